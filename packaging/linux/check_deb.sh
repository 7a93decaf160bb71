#!/usr/bin/env bash
# The packages in a clean Debian without Python: packaging/linux/check_deb.sh DEB [RELEASE] [MIRROR], as root.
#
# Installs the .deb, runs the smoke test as an ordinary user, removes it, and looks at what is left; then the .tar.gz
# that lies beside it, unpacked in that user's home, with the libraries of the system that the .deb brought. It needs
# debootstrap, and what `make package-check` needs. SNDR_ROOT names a root that debootstrap made before; it is copied.
# No step has a limit of time but the smoke test's own; one that fails is named, with what it printed last.
set -Eeuo pipefail

deb=$(readlink -f "${1:?usage: packaging/linux/check_deb.sh DEB [RELEASE] [MIRROR]}")
readonly deb release=${2:-bookworm} mirror=${3:-http://deb.debian.org/debian} user=person other=neighbour
readonly home=/usr/lib/sndr-control-center
readonly most=120000000
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
size=$(stat -c %s "$deb")
echo "$(basename "$deb"): $((size / 1000000)) MB"
[ "$size" -le "$most" ] || { echo "It is larger than $((most / 1000000)) MB." >&2; exit 1; }
root=$(mktemp -d "${TMPDIR:-/tmp}/sndr-root.XXXXXX")
said=$(mktemp "${TMPDIR:-/tmp}/sndr-check.XXXXXX")
readonly root said
step="making the root"

finish() {
    local place
    for place in tmp/.X11-unix proc; do
        ! mountpoint -q "$root/$place" || umount "$root/$place"
    done
    rm -rf --one-file-system "$root" "$said"
}
failed() {
    trap - ERR
    echo "FAILED on $release while $step." >&2
    tail -n 20 "$said" >&2
}
trap finish EXIT
trap failed ERR

inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }
# Says what is done now; what it prints is shown only if it fails.
doing() {
    step=$1
    shift
    "$@" >"$said" 2>&1
}
smoke_test() {
    : >"$said"
    .venv/bin/python packaging/smoke_test.py "$1" --root "$root" --user "$2"
}

if [ -n "${SNDR_ROOT:-}" ]; then
    cp -a "$SNDR_ROOT/." "$root/"
else
    doing "debootstrap makes the root" debootstrap --variant=minbase "$release" "$root" "$mirror"
fi
chmod 755 "$root"
mount -t proc proc "$root/proc"
mkdir -p "$root/tmp/.X11-unix" /tmp/.X11-unix
mount --bind /tmp/.X11-unix "$root/tmp/.X11-unix"
inside useradd --create-home "$user"
cp "$deb" "$root/tmp/sndr.deb"
doing "apt-get update reads the archive" inside apt-get -q update
began=$SECONDS
doing "apt-get installs the package" inside apt-get -q -y install --no-install-recommends /tmp/sndr.deb
echo "installed in $((SECONDS - began)) s on $(sed -n 's/^PRETTY_NAME=//p' "$root/etc/os-release")"
step="looking at what is installed"
! inside sh -c 'command -v python3 || command -v python' || { echo "There is a Python." >&2; exit 1; }
inside sh -c 'command -v sndr sndr-gui'
step="the smoke test runs the .deb's program"
smoke_test $home "$user"
inside dpkg -L sndr-control-center >"$root/tmp/installed"
doing "apt-get purges the package" inside apt-get -q -y purge sndr-control-center
step="looking at what is left"
left=$(find "$root"/{usr,etc,opt,var} -xdev -iname '*sndr*')
while read -r file; do
    # Folders may be those of others too.
    [ -d "$root$file" ] || [ ! -e "$root$file" ] || left+=" $file"
done <"$root/tmp/installed"
if [ -n "$left" ]; then
    echo "Removed, it left: $left" >&2
    exit 1
fi
echo "removed: nothing of it is left but what the user made"
archive=$(find "$(dirname "$deb")" -maxdepth 1 -name 'sndr-control-center-*-linux-*.tar.gz' -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d' ' -f2-)
if [ -n "$archive" ]; then
    step="unpacking the .tar.gz"
    # Somebody else, for whom it is a first start.
    inside useradd --create-home "$other"
    tar -xzf "$archive" -C "$root/home/$other"
    inside chown -R "$other:" "/home/$other"
    step="the smoke test runs the .tar.gz's program"
    smoke_test "/home/$other/$(basename "$archive" .tar.gz)" "$other"
    echo "unpacked anywhere: $(basename "$archive")"
fi
