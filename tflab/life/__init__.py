"""Life: a graph through its stages, as the live page, TensorBoard's tab and a notebook show it.

`stages` makes data of stages, `changes` compares two lives, `pages` makes pages of data. `storage`
writes a life into a logdir and reads it again; `plugin` is TensorBoard's tab.
"""
