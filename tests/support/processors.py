"""Processors of both vendors, for tests to put in the place of this machine's."""

from bleuprint.runtime.processor import Processor

# An EPYC of the fourth generation (Zen 4) and a Xeon of the fourth (Sapphire Rapids); both multiply
# in bfloat16, the Xeon also by AMX.
AMD = Processor(
    architecture="x86_64",
    vendor="AuthenticAMD",
    flags=frozenset({"avx2", "fma", "avx512f", "avx512_bf16", "avx512_vnni"}),
    cores=2,
)
INTEL = Processor(
    architecture="x86_64",
    vendor="GenuineIntel",
    flags=AMD.flags | {"amx_tile", "amx_bf16", "amx_int8"},
    cores=16,
)
# Processors that have AVX2 only: of the first EPYC generation and of the Core i7-4770 (Haswell).
OLD_AMD = Processor("x86_64", "AuthenticAMD", frozenset({"avx2", "fma"}), cores=1)
OLD_INTEL = Processor("x86_64", "GenuineIntel", frozenset({"avx2", "fma"}), cores=4)

ALL = {"AMD": AMD, "Intel": INTEL, "old AMD": OLD_AMD, "old Intel": OLD_INTEL}

# Without VNNI instructions CTranslate2 adds products of 8-bit integers in 16 bits. Sums that do not
# fit are cut off ("saturate"), and translations become worse. With these environments it computes
# as on both kinds of processor, whatever this machine has: oneDNN limits itself on processors of
# both vendors, and MKL's compatible mode always adds in 32 bits.
INT8_WITH_VNNI = {"CT2_USE_MKL": "1", "MKL_CBWR": "COMPATIBLE"}
INT8_WITHOUT_VNNI = {"CT2_USE_MKL": "0", "ONEDNN_MAX_CPU_ISA": "AVX2"}
