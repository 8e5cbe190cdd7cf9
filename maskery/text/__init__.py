"""Raw text to sentences, words and tokens."""
