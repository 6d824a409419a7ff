#!/usr/bin/env python3
"""Holds every #include of the project against the table in cmake/layers.cmake.

usage: check_layers.py ROOT [--self-test]

Rules: a file of module M includes "yolohpc/X/..." only if X is M or stands in M's row; no two modules use
each other; a row names only modules declared above it; public headers include the standard library,
ATen/core/Tensor.h and yolohpc headers only (model may add torch/nn/module.h); test files are free in what
they use, but src/ never includes from tests/.
"""
import re
import sys
from pathlib import Path

ROW = re.compile(r"yolohpc_add_module\(\s*(\w+)\s+USES([^)]*)\)")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
KEYWORDS = {"TORCH", "LIBS"}
PUBLIC_EXTRA = {"ATen/core/Tensor.h"}
PUBLIC_EXTRA_OF = {"model": {"torch/nn/module.h"}}


def read_table(root):
    table = {}
    for name, rest in ROW.findall((root / "cmake/layers.cmake").read_text()):
        uses = []
        for word in rest.split():
            if word in KEYWORDS:
                break
            uses.append(word)
        table[name] = uses
    return table


def table_faults(table):
    faults, seen = [], set()
    for name, uses in table.items():
        for used in uses:
            if used not in seen:
                faults.append(f"cmake/layers.cmake: {name} uses {used}, which is not declared above it")
        seen.add(name)
    return faults


def file_faults(path, text, module, table, public):
    faults = []
    for kind, target in INCLUDE.findall(text):
        parts = target.split("/")
        if parts[0] == "yolohpc" and len(parts) > 2:
            used = parts[1]
            if used != module and used not in table.get(module, []):
                faults.append(f"{path}: module {module} may not include {target}")
        elif target.startswith("tests/") or target.startswith("support/"):
            faults.append(f"{path}: {target} belongs to the tests")
        elif public and kind == "<" and "/" in target or public and target.endswith(".h") and kind == "<":
            if target not in PUBLIC_EXTRA | PUBLIC_EXTRA_OF.get(module, set()):
                faults.append(f"{path}: a public header may not include <{target}>")
    return faults


def check(root):
    table = read_table(root)
    faults = table_faults(table)
    for base, public in (("include/yolohpc", True), ("src", False)):
        for path in sorted((root / base).rglob("*")):
            if path.suffix not in {".hpp", ".cpp", ".cu", ".cuh"}:
                continue
            inside = path.relative_to(root / base).parts
            if len(inside) < 2:
                continue
            module = inside[0]
            if module not in table:
                faults.append(f"{path}: {module} is not in cmake/layers.cmake")
                continue
            faults += file_faults(path.relative_to(root), path.read_text(), module, table, public)
    return faults


def self_test():
    table = {"base": [], "data": ["base"]}
    bad = [
        ("data", '#include "yolohpc/train/x.hpp"\n', False),
        ("base", '#include "yolohpc/data/x.hpp"\n', False),
        ("data", "#include <mpi.h>\n", True),
        ("data", "#include <torch/torch.h>\n", True),
        ("data", '#include "support/golden.hpp"\n', False),
    ]
    good = [
        ("data", '#include "yolohpc/base/x.hpp"\n#include <vector>\n#include <ATen/core/Tensor.h>\n', True),
        ("data", "#include <mpi.h>\n", False),
    ]
    for module, text, public in bad:
        assert file_faults("f", text, module, table, public), text
    for module, text, public in good:
        assert not file_faults("f", text, module, table, public), text
    assert table_faults({"a": ["b"], "b": ["a"]})


if __name__ == "__main__":
    self_test()
    found = check(Path(sys.argv[1]))
    print("\n".join(found) or "layers: no forbidden include")
    sys.exit(bool(found))
