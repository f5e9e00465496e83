"""Private: the parts of TensorFlow that are not public, one function for each. No other package of
tflab uses these parts.

TensorFlow promises to keep only its documented API. That API does not tell the purpose of a graph's
ops, their kernels or the work of the runtime. Each function here says what it does, and with which
file of TensorFlow it was checked. The version of all these files is `graphs.CHECKED`. If another
version differs, a TflabError names the part that differs and what still works.

TensorFlow is imported when needed, because the variables for dumps must be set before. `dumps`
knows the names of graph dumps, `generated_code` XLA's own flags and dumps.
"""
