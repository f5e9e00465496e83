"""Generated code: every language is read from the dump as a listing."""

import re
import struct

import pytest

from tflab.errors import TflabError
from tflab.runtime import generated_code

HLO = """\
HloModule cluster_0, is_scheduled=true, entry_computation_layout={(f32[8]{0}, f32[])->f32[8]{0}}

%fused_computation (param_0: f32[8], param_1: f32[]) -> f32[8] {
  %param_0 = f32[8]{0} parameter(0)
  %param_1 = f32[] parameter(1)
  %half = f32[] constant(0.5), metadata={op_type="Const" op_name="elsewhere"}
  %b.0 = f32[8]{0} broadcast(%param_1), dimensions={}
  %b.1 = f32[8]{0} broadcast(%half), dimensions={}, metadata={op_type="Const" op_name="elsewhere"}
  %mul.0 = f32[8]{0} multiply(%b.0, %param_0), metadata={op_type="Mul" op_name="a/mul"}
  ROOT %sub.0 = f32[8]{0} subtract(%mul.0, %b.1), metadata={op_type="Sub" op_name="a/sub"}
}

ENTRY %main (arg0: f32[8], arg1: f32[]) -> (f32[8], f32[8]) {
  %arg0 = f32[8]{0} parameter(0), metadata={op_name="XLA_Args"}
  %arg1 = f32[] parameter(1), metadata={op_name="XLA_Args"}
  %f = f32[8]{0} fusion(%arg0, %arg1), kind=kLoop, calls=%fused_computation
  %conv.1 = f32[8]{0} convolution(%f, %arg0), metadata={op_type="Conv2D" op_name="conv"}
  ROOT %out = (f32[8]{0}, /*index=1*/f32[8]{0}) tuple(%f, %conv.1)
}
"""

LLVM = """\
define noalias noundef ptr @f(ptr readonly captures(none) %0) local_unnamed_addr #0 {
  %1 = getelementptr inbounds nuw i8, ptr %0, i64 24
  %2 = load ptr, ptr %1, align 8, !invariant.load !3
  %3 = load ptr, ptr %2, align 8, !dereferenceable !4
  %4 = getelementptr inbounds nuw i8, ptr %2, i64 16
  %5 = load ptr, ptr %4, align 8
  %6 = load float, ptr %5, align 4
  %splat = insertelement <8 x float> poison, float %6, i64 0
  %wide = shufflevector <8 x float> %splat, <8 x float> poison, <8 x i32> zeroinitializer
  %7 = load <8 x float>, ptr %3, align 4
  %8 = fmul <8 x float> %7, %wide
  %9 = fsub contract <8 x float> %8, splat (float 5.000000e-01)
  ret ptr null
}
"""


def elf(machine, code, function="f"):
    """The smallest object file: one section of code, one function in it."""
    strings, names = f"\0{function}\0".encode(), b"\0.text\0.strtab\0.symtab\0.shstrtab\0"
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0, 1, 0, len(code))
    parts, offset, body = [code, strings, symbols, names], 64, b""
    headers = [bytes(64)]
    for part, name, kind, link, entry in zip(
        parts, (1, 7, 15, 23), (1, 3, 2, 3), (0, 0, 2, 0), (0, 0, 24, 0), strict=True
    ):
        headers.append(
            struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, offset, len(part), link, 1, 1, entry)
        )
        body, offset = body + part, offset + len(part)
    start = b"\x7fELF\x02\x01\x01" + bytes(9)
    start += struct.pack("<HHIQQQIHHHHHH", 1, machine, 1, 0, 0, offset, 0, 64, 0, 0, 64, 5, 4)
    return start + body + b"".join(headers)


X86_64, AARCH64, RISCV = 62, 183, 243
FMSUB = bytes.fromhex("c4e275aac2c3")  # vfmsub213ps ymm0, ymm1, ymm2; ret


def dump(folder, hlo=HLO, llvm=LLVM, data=None):
    prefix = "module_0003.cluster_0__XlaCompiledKernel_true_.7."
    (folder / f"{prefix}before_optimizations.txt").write_text(HLO)
    (folder / f"{prefix}cpu_after_optimizations.txt").write_text(hlo)
    (folder / f"{prefix}f_kernel_module.ir-with-opt.ll").write_text(llvm)
    if data is not None:
        (folder / f"{prefix}obj-file.f_kernel_module.o").write_bytes(data)
    return folder


def read(folder):
    return generated_code.read(folder, ("out:0",), 8)


# A whole dump, small enough to write by hand.


def test_a_kernel_is_listed_in_every_language(tmp_path):
    (code,) = read(dump(tmp_path, data=elf(X86_64, FMSUB)))
    assert (code.cluster, code.fetches, code.batch_size) == ("cluster_0", ("out:0",), 8)
    kernel, library = code.kernels
    assert (kernel.name, kernel.bytes) == ("f", 6)
    assert kernel.opcodes == ("broadcast", "broadcast", "multiply", "subtract")
    assert kernel.nodes == ("a/mul", "a/sub")  # not the constant's, which others may share
    assert kernel.hlo[2] == "%mul.0 = f32[8]{0} multiply(%b.0, %param_0)"
    assert kernel.llvm[0].startswith("define noalias noundef ptr @f(")
    assert kernel.llvm[2] == "  %2 = load ptr, ptr %1, align 8"  # without metadata
    assert [line.split() for line in kernel.machine] == [
        ["0", "c4e275aac2", "vfmsub213ps", "ymm0,", "ymm1,", "ymm2"],
        ["5", "c3", "ret"],
    ]
    assert (library.name, library.opcodes, library.nodes) == ("conv.1", ("convolution",), ("conv",))
    assert (library.bytes, library.llvm, library.machine) == (0, (), ())


def test_code_is_disassembled_for_the_processor_of_the_file():
    data = elf(AARCH64, bytes.fromhex("20dc226e20cc224e"))
    size, lines = generated_code.machine_code(data)["f"]
    assert size == 8
    assert [line.split(maxsplit=2)[2] for line in lines] == [
        "fmul v0.4s, v1.4s, v2.4s",
        "fmla v0.4s, v1.4s, v2.4s",
    ]
    assert generated_code.machine_code(elf(RISCV, bytes(4))) == {}
    assert generated_code.machine_code(b"no ELF") == {}


def test_listings_get_names_that_stay_in_their_folder(tmp_path):
    (code,) = read(dump(tmp_path, data=elf(X86_64, FMSUB)))
    assert list(code.listings) == ["hlo-before.txt", "hlo-after.txt", "000-f.ll", "000-f.s"]
    assert code.listings["000-f.s"] == "\n".join(code.kernels[0].machine) + "\n"
    hlo, llvm = HLO.replace("%f =", "%.. ="), LLVM.replace("@f", "@..")
    (code,) = read(dump(tmp_path, hlo=hlo, llvm=llvm, data=elf(X86_64, FMSUB, "..")))
    assert list(code.listings)[2:] == ["000-__.ll", "000-__.s"]


def test_what_is_no_dump_is_refused(tmp_path):
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(TflabError, match="XLA compiled nothing"):
            read(folder)
    with pytest.raises(TflabError, match="without an entry"):
        read(dump(tmp_path, hlo="module @stablehlo {}"))
    next(tmp_path.glob("*cpu_after*")).unlink()
    with pytest.raises(TflabError, match=r"no module_0003\..*cpu_after_optimizations"):
        read(tmp_path)
    with pytest.raises(TflabError, match="quotation mark"):
        generated_code.environment('a"b')


@pytest.mark.tensorflow
def test_the_multiply_and_the_add_of_the_toy_are_one_kernel_with_code(walked):
    """The TensorFlow that is installed compiles both, and says of the formula alone the same."""
    import tensorflow as tf

    (code,) = walked("toy")["placement"].generated
    (kernel,) = code.kernels
    assert set(kernel.nodes) == {"mul", "add"}
    assert any("fmul <" in line for line in kernel.llvm)  # a batch of more than 48: a loop
    assert kernel.bytes and kernel.machine
    formula = tf.function(lambda x, y, z: x * y + z, jit_compile=True)
    arguments = [tf.constant(1.0, shape=shape) for shape in ([code.batch_size], [], [])]
    hlo = formula.experimental_get_compiler_ir(*arguments)(stage="optimized_hlo")
    opcodes = re.findall(r"^ +(?:ROOT )?%[\w.\-]+ = \S+ ([\w\-]+)\(", hlo, re.MULTILINE)
    assert {"multiply", "add"} <= set(kernel.opcodes)
    assert sorted(kernel.opcodes) == sorted(
        opcode for opcode in opcodes if opcode not in {*generated_code.PASSIVE, "fusion"}
    )
