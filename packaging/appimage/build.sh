#!/usr/bin/env bash
# The frozen folder as one file that runs where it lies: packaging/appimage/build.sh FOLDER, after `make package`.
#
# NEVER RUN by us yet: it needs `appimagetool` in PATH, and the runtime that it puts in front, from AppImage's releases.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
readonly out=${1:?usage: packaging/appimage/build.sh FOLDER}
readonly frozen=build/frozen/sndr-control-center root=build/frozen/AppDir
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' engine_host/__init__.py)

rm -rf "$root"
mkdir -p "$root/usr/lib" "$root/usr/share/applications" "$root/usr/share/metainfo" "$out"
cp -a "$frozen" "$root/usr/lib/"
install -m 755 packaging/appimage/AppRun "$root/AppRun"
sed 's/@PROGRAM@/sndr-gui/' packaging/linux/sndr.desktop >"$root/usr/share/applications/sndr.desktop"
ln -s usr/share/applications/sndr.desktop "$root/sndr.desktop"
cp resources/icons/sndr.svg "$root/sndr.svg"
ln -s sndr.svg "$root/.DirIcon"
sed -e "s/@VERSION@/$version/" -e "s/@DATE@/$(git log -1 --format=%cs)/" \
    packaging/linux/sndr.metainfo.xml >"$root/usr/share/metainfo/sndr.metainfo.xml"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) ARCH=$(uname -m) \
    appimagetool "$root" "$out/sndr-control-center-$version-$(uname -m).AppImage"
