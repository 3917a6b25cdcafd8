"""SavedModels for TensorFlow Serving: strings in, strings out."""
