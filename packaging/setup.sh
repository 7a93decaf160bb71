#!/usr/bin/env bash
# Makes this clone ready: system packages, a virtual environment, the locked Python packages.
#
#   packaging/setup.sh run|window|test
#
# `run` is enough for the host and the command line, `window` adds the window's system packages, `test` adds
# everything that `make test` needs. Each part is done once: a stamp holds the checksum of what it was done from.
# As root, missing system packages are installed; otherwise the exact command is printed and nothing happens.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly profile="${1:-run}"
readonly venv=.venv
readonly stamps=$venv/stamps
readonly list=packaging/system-packages.txt

say() { printf '%s\n' "$*" >&2; }
# One line for each step: a minute without a word looks like a hang.
step() { say "  $* …"; }

stop() { # what, why, what to do
    say ""
    say "Set-up stopped: $1"
    [ -z "${2:-}" ] || say "  Why:        $2"
    [ -z "${3:-}" ] || say "  What to do: $3"
    exit 1
}

case $profile in
    run) groups="base"; lock=packaging/locks/run.lock size="about 200 MB to download, 0.6 GB on the disk" ;;
    window) groups="base window"; lock=packaging/locks/run.lock size="about 200 MB to download, 0.6 GB on the disk" ;;
    test) groups="base window test"; lock=packaging/locks/test.lock size="about 260 MB to download, 0.8 GB on the disk" ;;
    *) stop "there is no set-up called '$profile'" "" "Use one of: run, window, test." ;;
esac

# ---------------------------------------------------------------- stamps

checksum() { cat "$@" 2>/dev/null | cksum | tr ' ' '-'; }

done_already() { # name, checksum
    [ -f "$stamps/$1" ] && [ "$(cat "$stamps/$1")" = "$2" ]
}

mark_done() { # name, checksum
    mkdir -p "$stamps"
    printf '%s' "$2" >"$stamps/$1"
}

# ---------------------------------------------------------------- system packages

is_installed() { # one package, or alternatives separated by |
    local name
    for name in ${1//|/ }; do
        [ "$(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null)" = installed ] && return 0
    done
    return 1
}

first_known() { # of the alternatives, the one that this release has; the last one when apt knows none
    local name policy
    for name in ${1//|/ }; do
        # Not through a pipe to grep -q: with pipefail its early end counts as a failure.
        policy=$(apt-cache policy "$name" 2>/dev/null)
        [[ $policy == *"Candidate: "[^\(]* ]] && break
    done
    printf '%s' "$name"
}

install_command() { printf 'apt-get update && apt-get install -y --no-install-recommends %s' "$*"; }

install_packages() { # names; each may hold alternatives
    local missing=() names=() package
    for package in "$@"; do
        [ -z "$package" ] || is_installed "$package" || missing+=("$package")
    done
    [ "${#missing[@]}" -gt 0 ] || return 0
    if [ "$(id -u)" -ne 0 ]; then
        for package in "${missing[@]}"; do names+=("$(first_known "$package")"); done
        stop "system packages are missing" "Only root may install them: ${names[*]}" \
            "sudo sh -c '$(install_command "${names[@]}")'"
    fi
    export DEBIAN_FRONTEND=noninteractive
    local log
    log=$(mktemp)
    # Another apt may be at work on a fresh machine (unattended-upgrades): wait for it, up to five minutes.
    local -a apt=(apt-get -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
    if [ -z "${lists_are_fresh:-}" ]; then
        say "Reading the lists of system packages …"
        "${apt[@]}" update >"$log" 2>&1 || say "apt-get update had failures; trying with the lists that are here."
        lists_are_fresh=yes
    fi
    for package in "${missing[@]}"; do names+=("$(first_known "$package")"); done
    say "Installing system packages: ${names[*]} …"
    if ! "${apt[@]}" install --no-install-recommends "${names[@]}" </dev/null >>"$log" 2>&1; then
        tail -n 15 "$log" >&2
        stop "apt-get could not install: ${names[*]}" "Its last lines are above; all of them are in $log." \
            "$(install_command "${names[@]}")"
    fi
    rm -f "$log"
}

packages_of() { # groups; prints one package a line, alternatives joined by |
    local group
    for group in "$@"; do
        sed -n "s/#.*//; s/[[:space:]]//g; s/^$group://p" "$list"
    done
}

# Debian and Ubuntu ship Python without pip and ensurepip; python3.x-venv brings both. uv needs one of them to be
# installed with, the build of llama.cpp needs ensurepip.
needed_by_python() {
    python=$(find_python) || return 0
    has_module ensurepip && return 0
    if [ "$(id -u)" -eq 0 ] || [ "$profile" = test ] || ! has_module pip; then
        "$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'
    fi
}

ensure_system_packages() {
    local sum packages
    sum=$(checksum "$list")
    done_already "system-$profile" "$sum" && return 0
    if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
        # shellcheck disable=SC2086  # The groups are words.
        mapfile -t packages < <(packages_of $groups; needed_by_python)
        install_packages "${packages[@]}"
    else
        say "This is not Debian or Ubuntu: the system packages in $list are not checked."
    fi
    system_sum=$sum
}

# ---------------------------------------------------------------- Python

fits() { # a Python that the pinned packages support
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1
}

find_python() {
    local candidate
    for candidate in ${SNDR_PYTHON:-} python3 python3.13 python3.12 python3.11 /usr/bin/python3; do
        if fits "$candidate"; then
            command -v "$candidate"
            return 0
        fi
    done
    return 1
}

ensure_python() {
    python=$(find_python) && return 0
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
        # Ubuntu 22.04's python3 is 3.10; the same release also has 3.11.
        install_packages "python3.13|python3.12|python3.11"
        install_packages "$(needed_by_python)"
        python=$(find_python) && return 0
    fi
    stop "no Python 3.11, 3.12 or 3.13 was found" \
        "python3 here is: $(python3 --version 2>&1 || true)" \
        "sudo apt-get install -y python3.11 (or set SNDR_PYTHON to one)"
}

has_module() { "$python" -c "import $1" >/dev/null 2>&1; }

# uv installs the packages about ten times faster than pip; pip is its fallback and installs uv itself.
ensure_uv() {
    local version cache
    version=$(sed -n 's/^uv==\([0-9.]*\).*/\1/p' packaging/locks/bootstrap.lock)
    cache=${SNDR_CACHE:-${SNDR_HOME:+$SNDR_HOME/cache}}
    uv_home=${cache:-${XDG_CACHE_HOME:-$HOME/.cache}/sndr}/uv-$version
    uv=$uv_home/bin/uv
    "$uv" --version >/dev/null 2>&1 && return 0
    step "uv $version, which installs the others"
    local part=$uv_home.part.$$
    rm -rf "$part"
    if has_module pip; then
        "$python" -m pip install -q --target "$part" --no-deps --require-hashes --disable-pip-version-check \
            --no-warn-script-location --root-user-action=ignore -r packaging/locks/bootstrap.lock >&2 || return 1
    else
        "$python" -m venv "$part/venv" >&2 &&
            "$part/venv/bin/python" -m pip install -q --target "$part" --no-deps --require-hashes \
                --disable-pip-version-check -r packaging/locks/bootstrap.lock >&2 || return 1
        rm -rf "$part/venv"
    fi
    rm -rf "$uv_home" && mv "$part" "$uv_home"
}

# A mirror that the person configured for pip serves uv too.
follow_pip_settings() {
    local index
    has_module pip || return 0
    [ -z "${UV_DEFAULT_INDEX:-}${UV_INDEX_URL:-}" ] || return 0
    index=${PIP_INDEX_URL:-$("$python" -m pip config get global.index-url 2>/dev/null || true)}
    [ -z "$index" ] || export UV_DEFAULT_INDEX=$index
}

install_with_uv() {
    ensure_uv || return 1
    follow_pip_settings
    export UV_PYTHON_DOWNLOADS=never UV_HTTP_TIMEOUT=120
    if [ ! -x $venv/bin/python ] || ! fits $venv/bin/python; then
        step "an environment of its own, .venv"
        "$uv" venv -q --clear --python "$python" $venv || return 1
    fi
    step "the packages themselves, from uv's cache or the network"
    # The locks are supersets of one another: a set-up for `run` after one for `test` removes nothing.
    "$uv" pip install "${quiet[@]}" --python $venv/bin/python --require-hashes --compile-bytecode -r "$lock"
}

install_with_pip() {
    say "uv did not do it; trying with pip (slower) …"
    "$python" -m venv --clear $venv &&
        $venv/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r "$lock"
}

# The clone is used where it is. An installed copy (also an "editable" one) would hold the resources twice.
install_ourselves() {
    local folder
    folder=$($venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    printf '%s\n' "$PWD" >"$folder/sndr-control-center.pth"
    write_program sndr engine_host.__main__
    write_program sndr-gui sndr_gui.__main__
    step "the program's own modules, compiled so that it starts quickly"
    $venv/bin/python -m compileall -q engine_host sndr_gui || true
}

write_program() { # name, module with main()
    # Through sh, because the kernel takes neither a long path nor one with spaces behind #!.
    cat >"$venv/bin/$1" <<END
#!/bin/sh
'''exec' "\$(dirname "\$(readlink -f "\$0")")/python" "\$0" "\$@"
' '''
import sys

from $2 import main

sys.argv[0] = "$1"
sys.exit(main())
END
    chmod 755 "$venv/bin/$1"
}

# A second work tree may link to the environment of the first, which stays that one's: installing here would have its
# programs read our sources from then on.
lent_by() {
    local owner
    [ -L $venv ] && [ -x $venv/bin/sndr ] || return 1
    owner=$(cat $venv/lib/python3*/site-packages/sndr-control-center.pth 2>/dev/null) || return 1
    [ "$owner" != "$PWD" ] && [ -f "$owner/packaging/setup.sh" ] && printf '%s' "$owner"
}

ensure_packages() {
    local sum owner
    local -a quiet=(-q)
    if owner=$(lent_by); then
        say "The environment is that of $owner and stays as it is."
        return 0
    fi
    # Minutes with a slow network: at a terminal uv shows what it downloads.
    [ ! -t 2 ] || quiet=()
    sum=$(checksum "$lock" pyproject.toml packaging/setup.sh)-$PWD
    done_already "packages-${lock//\//-}" "$sum" && [ -x $venv/bin/sndr ] && return 0
    ensure_python
    say "Installing the Python packages ($("$python" --version), $(grep -c '^[a-z0-9].*==' "$lock") packages, $size) …"
    install_with_uv || install_with_pip ||
        stop "the Python packages could not be installed" "pip's and uv's messages are above." \
            "Check the network (or the mirror in pip's settings) and run the same command again."
    install_ourselves
    mark_done "packages-${lock//\//-}" "$sum"
    [ ! -x "${uv:-}" ] || mark_done uv "$uv"
    # What was installed for `test` is also enough for `run`.
    [ "$lock" != packaging/locks/test.lock ] ||
        mark_done packages-packaging-locks-run.lock "$(checksum packaging/locks/run.lock pyproject.toml packaging/setup.sh)-$PWD"
}

# Engines that read safetensors (vLLM) get the bundled model too; only its GGUF is in the repository.
ensure_checkpoint() {
    local folder=resources/models/sndr-demo
    local gguf=$folder/sndr-demo-q8_0.gguf sum
    sum=$(checksum $gguf packaging/demo_model/gguf_to_safetensors.py)
    done_already checkpoint "$sum" && [ -f $folder/model.safetensors ] && return 0
    say "Writing the bundled model for engines that read safetensors …"
    $venv/bin/python packaging/demo_model/gguf_to_safetensors.py $gguf $folder ||
        stop "the bundled model's checkpoint could not be written" "Python's message is above." \
            "Check that the disk has 30 MB left and run the same command again."
    mark_done checkpoint "$sum"
}

# One set-up of a clone at a time: each would write over what the other is writing. The lock is on this very file,
# and ends with the process.
wait_for_other_setup() {
    command -v flock >/dev/null || return 0
    exec 9<packaging/setup.sh
    flock -n 9 && return 0
    say "Another set-up of this clone is at work; waiting until it is done …"
    flock 9
}

system_sum=""
wait_for_other_setup
ensure_system_packages
ensure_packages
ensure_checkpoint
[ -z "$system_sum" ] || mark_done "system-$profile" "$system_sum"
