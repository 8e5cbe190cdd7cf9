"""TensorFlow's checkpoints without TensorFlow: the files read and checked, their names turned into Hugging Face's."""
