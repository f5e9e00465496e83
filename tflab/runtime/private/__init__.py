"""Private: the parts of TensorFlow that are not public. No other package of tflab uses them.

The documented API does not tell the purpose of a graph's ops, their kernels or the work of the
runtime. Each function here names the file of TensorFlow that it uses, mostly by `graphs.corner`.
All were checked with the version `graphs.CHECKED`; a TflabError names a part that has moved.
TensorFlow is imported when needed, because the variables for dumps must be set before.
"""
