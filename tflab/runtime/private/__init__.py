"""Private: the parts of TensorFlow that are not public, one function for each. No other package of
tflab uses them.

TensorFlow promises to keep only its documented API. The purpose of a graph's ops, their kernels and
the work of the runtime are behind that. Each function here says what it does and which file of
TensorFlow it was checked with; all were checked with CHECKED. If another version differs, a
TflabError names the part that differs and what still works.

TensorFlow is imported when needed, because the variables for dumps must be set before. `dumps`
knows the names of graph dumps, `generated_code` XLA's own flags and dumps.
"""
