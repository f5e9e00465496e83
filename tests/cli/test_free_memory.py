"""Free memory, as the machine and the container say it. No TensorFlow in here."""

from tflab.cli import environment


def test_free_is_what_the_machine_and_the_container_both_have(tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(environment, "CGROUP", tmp_path)
    assert environment.free_memory() is None
    environment.MEMINFO.write_text("MemTotal: 9 kB\nMemAvailable:   3 kB\nSwapFree: 1 kB\n")
    assert environment.free_memory() == 4096
    (tmp_path / "memory.max").write_text("3000\n")
    (tmp_path / "memory.current").write_text("2900\n")
    (tmp_path / "memory.stat").write_text("anon 1000\nactive_file 700\ninactive_file 1200\n")
    assert environment.free_memory() == 2000, "what files left in memory is given back"
    (tmp_path / "memory.max").write_text("max\n")
    assert environment.free_memory() == 4096
