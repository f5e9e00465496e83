"""Private: the parts of TensorFlow that are not public, one function for each. No other package of
tflab uses them.

TensorFlow promises to keep only its documented API. The purpose of a graph's ops, their kernels and
the work of the runtime are behind that. Each function here says what it does and which file of
TensorFlow it was checked with; all were checked with CHECKED. If another version differs, a
TflabError names the part that differs and what still works.

TensorFlow is imported when needed, because the variables for dumps must be set before. `dumps`
knows the names of graph dumps, `generated_code` XLA's own flags and dumps.
"""

from tflab.runtime.private.graphs import (
    CHECKED,
    Frame,
    derivations,
    derived_from,
    frame_within,
    gradient_calls,
    gradient_function,
    gradients_file,
    moved,
    onednn_is_on,
    op_def,
    original_op,
    registered_kernels,
    set_device,
    traced_graphs,
)
from tflab.runtime.private.sessions import (
    Building,
    Log,
    TraceBuffers,
    build,
    compiled_step,
    copied_bytes,
    ctrl_c_kept,
    fetch_alone,
    is_watched,
    read_dump_settings,
    shared_step,
    tensor_name,
    tensor_outputs,
    watch,
)
from tflab.runtime.private.source_lines import (
    compiled_on,
    constructed,
    layer_names,
    making,
    noted,
    on_line,
    stand_in,
)
from tflab.runtime.private.watched_functions import (
    DIFFERENTIATES,
    READS,
    Profiling,
    arguments,
    called,
    is_eager,
    is_new,
    locals_of,
    numbers_of,
    results,
    run_op_by_op,
    traced_function,
    watch_functions,
    watch_ops,
    xspace,
)
