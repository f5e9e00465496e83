"""Runtime: everything that calls TensorFlow's runtime. Live objects stay here, records leave."""
