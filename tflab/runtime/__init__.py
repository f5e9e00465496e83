"""Runtime: all that touches TensorFlow's runtime. Live objects stay here, records leave."""
