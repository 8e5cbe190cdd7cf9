"""From the texts of examples to rows of tokens that a model reads, and back to the characters they stand for."""
