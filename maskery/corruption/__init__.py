"""What is hidden in a row, and what is put in its place."""
