"""Encoders of sentences are trained: losses, texts, batches, the run, and the search for hard negatives."""
