"""Text files to a memory-mapped store of tokens, and the store opened."""
