"""One vector a word: words counted in a corpus, trained, kept, asked and examined."""
