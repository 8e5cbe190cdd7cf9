"""Recipes: the TOML files of the published models, and the code that reads, merges, checks and compares them."""
