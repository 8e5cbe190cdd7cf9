"""What is done to sentence vectors after the encoder: whitening, centring, a flow; fitted, kept in a file, applied."""
