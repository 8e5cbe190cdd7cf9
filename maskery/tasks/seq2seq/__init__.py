"""Texts for texts: a model that writes is trained to write the target of a source."""
