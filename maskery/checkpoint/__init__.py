"""Model folders: the Hugging Face layout written and read, weight names by family."""
