"""Recipes trained side by side, and asked the same questions: `maskery compare`."""
