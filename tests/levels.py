"""Levels: which tests `make test` leaves to `make test-all`.

The mark `thorough` does the same for single tests.
"""

# Files of which `make test` runs only the quick tests, and the representatives below, and
# `make test-all` all tests: of processes, signals, the confined process, tasks, the wheel, watched
# programs and the browser, and of many made-up examples.
THOROUGH = (
    *("browser/", "project/test_wheel", "project/test_example"),
    *("cli/test_interrupts", "cli/test_confined", "models/test_wall", "cli/test_temporary"),
    *("run/test_watched", "run/test_v1", "run/test_undisturbed", "explore/test_worker_pool"),
    *("runtime/test_cluster", "lifecycle/test_over_tasks"),
    *("compare/test_over_tasks", "lifecycle/test_cluster_command", "runtime/test_tf_import"),
    *("compare/test_diagnosis_of_planted_problems", "compare/test_python_functions"),
    *("lifecycle/test_random_programs", "exporters/plots/test_plots", "models/test_keras"),
    *("models/test_models", "runtime/test_processes", "train/test_command"),
)
# One test of each part of the system
REPRESENTATIVES = (
    "test_it_opens_from_a_file_without_an_error_or_a_request",  # a page in a browser
    "test_every_file_of_the_package_is_in_the_wheel",
    "test_a_command_keeps_what_it_has_measured[compare]",  # signals
    "test_no_attack_reaches_anything_outside",  # the confined process
    "test_each_nanosecond_of_a_training_has_one_owner",  # a watched program
    "test_each_stage_comes_with_its_drawing_and_the_line_of_every_node",  # the live page
    "test_a_model_computes_what_numpy_computes[lenet]",
    "test_a_training_prints_every_epoch_and_writes_what_tensorboard_shows",
    "test_the_result_of_another_process_comes_back_whatever_it_prints",
    "test_a_walk_over_two_tasks_leaves_a_profile_of_three_hosts_and_a_chart",
)
