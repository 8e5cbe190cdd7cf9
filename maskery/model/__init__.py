"""The one Transformer: embeddings, positions, visibility, attention, blocks, heads."""
