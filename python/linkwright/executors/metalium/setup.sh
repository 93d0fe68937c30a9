#!/bin/bash
# The runtime of Tenstorrent (ttnn) and a simulator of its chips (wolfpine), in an environment of their own.
#
#   python/linkwright/executors/metalium/setup.sh FOLDER [PYTHON]        `make setup-metalium` calls it
#
# PYTHON is 3.10 or 3.12, for which ttnn has wheels. ttnn compiles every kernel when it runs it, with a compiler that no
# registry has; where it is absent, a stand-in maps its command line to Debian's RISC-V compiler. That serves
# data-movement kernels. On a machine with a board, install the vendor's compiler (SFPI) instead: nothing is replaced.
set -euo pipefail
folder=${1:?usage: python/linkwright/executors/metalium/setup.sh FOLDER [PYTHON]}
packages=(ttnn==0.81.1 wolfpine==2.2)

suits() { [ -n "$1" ] && "$1" -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 10), (3, 12)))' 2>/dev/null; }
python=
for candidate in "${2:-}" python3.12 python3.10 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[02].*/bin/python; do
    found=$(command -v "$candidate" || true)
    if suits "$found"; then python=$found; break; fi
    [ "$candidate" != "${2:-}" ] || [ -z "$candidate" ] || { echo "$candidate is neither Python 3.10 nor 3.12; ttnn has wheels for these two only" >&2; exit 2; }
done
[ -n "$python" ] || { echo "there is no Python 3.10 or 3.12, for which alone ttnn has wheels; install one, or name it: make setup-metalium METALIUM_PYTHON=" >&2; exit 2; }

[ -x "$folder/bin/python" ] || "$python" -m venv "$folder"
folder=$(cd "$folder" && pwd)
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check "${packages[@]}"
root=$("$folder/bin/python" -c 'import importlib.util as u; print(u.find_spec("ttnn").submodule_search_locations[0])')
bin=$root/runtime/sfpi/compiler/bin
include=$root/runtime/sfpi/standin
if [ -x "$bin/riscv-tt-elf-g++" ] && [ ! -d "$include" ]; then
    echo "the vendor's compiler is there: $bin"
    exit 0
fi

missing=()
for package in gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf g++; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
    [ "$(id -u)" = 0 ] || { echo "these packages are missing, and installing them needs root: apt-get install ${missing[*]}" >&2; exit 2; }
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

# Debian has no C++ library for this target. Kernels use headers of it only, so the host's will do once they no longer
# ask for Linux: no threads, no thread-local storage, another C library.
mkdir -p "$bin" "$include"
rm -rf "${include:?}"/*
host=$(ls -d /usr/include/c++/[0-9]* | sort -V | tail -1)
cp -r "$(ls -d /usr/include/*/c++/"${host##*/}" | head -1)/bits" "$include/bits"
sed -i -E '/^#define _GLIBCXX_(HAVE_LINUX_FUTEX|HAVE_TLS|HAS_GTHREADS) 1/d' "$include/bits/c++config.h"
printf '#pragma once\n#define _GLIBCXX_NO_OBSOLETE_ISINF_ISNAN_DYNAMIC 0\n' >"$include/bits/os_defines.h"
printf '#pragma once\n#include <sys/features.h>\n#ifndef __GLIBC_PREREQ\n#define __GLIBC_PREREQ(a, b) 0\n#endif\n' >"$include/features.h"
ln -sfn "$host" "$include/../standin-c++"

cat >"$bin/riscv-tt-elf-g++" <<'SH'
#!/bin/bash
# Tenstorrent's compiler by its command line; Debian's by what it does.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
picolibc=/usr/lib/picolibc/riscv64-unknown-elf
arguments=() link=yes
for argument in "$@"; do
    case $argument in
    --version | -dumpversion | -dumpmachine) exec riscv64-unknown-elf-g++ "$argument" ;;
    -mcpu=tt-wh-tensix) arguments+=(-march=rv32im -mabi=ilp32 -D__riscv_xtttensixwh=1) ;;
    -mcpu=*) arguments+=(-march=rv32im -mabi=ilp32) ;;      # the small cores are RV32IM and something of their own
    -ftt-* | -mtt* | *rvtt* | -flto* | -Werror | -Werror=* | -Wno-error=*) ;;  # only that compiler knows them
    -std=c++17) arguments+=(-std=c++20) ;;                  # for constinit and consteval, which it has in C++17
    -c | -E | c++-header) link=no; arguments+=("$argument") ;;
    *) arguments+=("$argument") ;;
    esac
done
[ $link = no ] || arguments+=(-nostdlib "-L$picolibc/lib/rv32im/ilp32" -lc -lgcc)
# Kernels are placed when they are loaded, which a table of addresses (a switch) could not follow. A
# `static_assert(false)` in a template that nobody uses is an error before GCC 13.
exec riscv64-unknown-elf-g++ -w -fno-lto -fno-use-linker-plugin -fno-jump-tables -D_GLIBCXX_HOSTED=1 \
    '-Dstatic_assert(...)=static_assert(true)' -isystem "$here/../../standin" -isystem "$here/../../standin-c++" \
    -idirafter "$picolibc/include" "${arguments[@]}"
SH
chmod +x "$bin/riscv-tt-elf-g++"
for tool in gcc ar ld nm objcopy objdump readelf size; do
    ln -sf "$(command -v riscv64-unknown-elf-$tool)" "$bin/riscv-tt-elf-$tool"
done

# Three objects of the wheel are in the format of its compiler's link-time optimizer; their sources are in the wheel too.
metal=$root/tt_metal
chip=$metal/hw/inc/internal/tt-1xx/wormhole
includes=()
for place in "$root" "$metal" "$metal/hw/inc" "$metal/hostdevcommon/api" "$metal/api" "$metal/hw/inc/internal/tt-1xx" "$chip" \
    "$chip/wormhole_b0_defines" "$chip/noc" "$metal/hw/firmware/src/tt-1xx" "$metal/tt-llk/tt_llk_wormhole_b0/common/inc"; do
    includes+=("-I$place")
done
for source in toolchain/substitutes.cpp firmware/src/tt-1xx/wormhole/noc.c firmware/src/tt-1xx/tdma_xmov.c; do
    object=$(basename "${source%.*}").o
    "$bin/riscv-tt-elf-g++" -O2 -std=c++17 -mcpu=tt -fno-exceptions -fno-rtti -fno-tree-loop-distribute-patterns \
        -ffunction-sections "${includes[@]}" -DARCH_WORMHOLE -DTENSIX_FIRMWARE -DCOMPILE_FOR_BRISC -DPROCESSOR_INDEX=0 \
        -c -x c++ "$metal/hw/$source" -o "$root/runtime/hw/lib/wormhole/$object"
done
echo "ready: linkwright run allreduce --on metalium --ranks 4 --sizes 2K"
