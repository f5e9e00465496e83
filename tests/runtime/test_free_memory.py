"""Free memory, as the machine and the container say it. No TensorFlow in here."""

from tflab.runtime import free_memory


def test_free_is_what_the_machine_and_the_container_both_have(tmp_path, monkeypatch):
    for name in ("MEMINFO", "LIMIT", "USED", "DETAILS"):
        monkeypatch.setattr(free_memory, name, tmp_path / name)
    assert free_memory.available() is None
    free_memory.MEMINFO.write_text("MemTotal: 9 kB\nMemAvailable:   3 kB\nSwapFree: 1 kB\n")
    assert free_memory.available() == 4096
    free_memory.LIMIT.write_text("3000\n")
    free_memory.USED.write_text("2900\n")
    free_memory.DETAILS.write_text("anon 1000\nactive_file 700\ninactive_file 1200\n")
    assert free_memory.available() == 2000, "what files left in memory is given back"
    free_memory.LIMIT.write_text("max\n")
    assert free_memory.available() == 4096
