"""Writing and scoring: from a trained model and a prompt to text, and from a text to its probability."""
