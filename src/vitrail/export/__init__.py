"""Models as code for other places: C for devices, JavaScript, ONNX, plain numpy files."""
