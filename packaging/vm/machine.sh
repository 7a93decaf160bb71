#!/usr/bin/env bash
# A whole machine with real systemd, sshd and rootless Podman, in QEMU, for the check of other machines by hand.
#
#   packaging/vm/machine.sh make FOLDER [RELEASE] [MIRROR]   as root, with debootstrap: the disk, once
#   packaging/vm/machine.sh start FOLDER [PORT]              runs it in the foreground; ssh on 127.0.0.1:PORT
#
# FOLDER gets the disk, its kernel, a key and an ssh configuration that knows the machine. Its users: `worker`,
# `tenant` whose services may not outlive a logout, `admin` with sudo, and root. It reaches nothing outside. SNDR_ROOT names
# a root that was made before with the packages below. Without KVM that runs a whole kernel it is emulated
# (SNDR_VM_ACCEL=kvm asks for it).
set -euo pipefail

readonly what=${1:-}
mkdir -p "${2:?usage: packaging/vm/machine.sh make|start FOLDER}"
folder=$(readlink -f "$2")
readonly folder
readonly packages=linux-image-cloud-amd64,systemd-sysv,libpam-systemd,dbus-user-session,polkitd,openssh-server
readonly more=python3,python3-venv,sudo,iproute2,procps,udev,kmod,rsync,podman,netavark,crun,catatonit,uidmap,slirp4netns,fuse-overlayfs,libgomp1

make_disk() {
    local release=${1:-bookworm} mirror=${2:-}
    root=$(mktemp -d "$folder/root.XXXXXX")
    trap 'rm -rf --one-file-system "$root"' EXIT
    if [ -n "${SNDR_ROOT:-}" ]; then
        cp -a "$SNDR_ROOT/." "$root/"
    else
        # What depends on one of several packages is more than debootstrap settles.
        debootstrap --variant=minbase "$release" "$root" ${mirror:+"$mirror"} >/dev/null
        # shellcheck disable=SC2086
        chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive \
            apt-get -q -y install --no-install-recommends ${packages//,/ } ${more//,/ } >/dev/null
    fi
    chmod 755 "$root"
    for name in worker tenant admin; do
        chroot "$root" useradd --create-home --shell /bin/bash "$name"
    done
    echo 'admin ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/admin"
    cat >"$root/etc/polkit-1/rules.d/10-tenant.rules" <<'RULE'
polkit.addRule(function(action, subject) {
    if (action.id == "org.freedesktop.login1.set-self-linger" && subject.user == "tenant") return polkit.Result.NO;
});
RULE
    printf '[Match]\nName=en* eth*\n[Network]\nDHCP=ipv4\n' >"$root/etc/systemd/network/80-any.network"
    ln -sf /lib/systemd/system/systemd-networkd.service "$root/etc/systemd/system/multi-user.target.wants/"
    echo '/dev/vda / ext4 defaults 0 1' >"$root/etc/fstab"
    echo sndr-vm >"$root/etc/hostname"
    printf '127.0.0.1 localhost sndr-vm\n' >"$root/etc/hosts"
    rm -f "$root/etc/resolv.conf" "$root"/etc/ssh/ssh_host_*
    ssh-keygen -q -t ed25519 -N '' -C sndr-vm -f "$root/etc/ssh/ssh_host_ed25519_key"
    [ -f "$folder/key" ] || ssh-keygen -q -t ed25519 -N '' -C sndr-vm -f "$folder/key"
    for name in root home/worker home/tenant home/admin; do
        install -d -m 700 "$root/$name/.ssh"
        install -m 600 "$folder/key.pub" "$root/$name/.ssh/authorized_keys"
        [ "$name" = root ] || chroot "$root" chown -R "${name#home/}:" "/$name/.ssh"
    done
    cp "$root/etc/ssh/ssh_host_ed25519_key.pub" "$folder/host_key.pub"
    cp "$root"/boot/vmlinuz-* "$folder/vmlinuz"
    cp "$root"/boot/initrd.img-* "$folder/initrd"
    rm -f "$folder/disk.img"
    mke2fs -q -t ext4 -d "$root" "$folder/disk.img" "${SNDR_VM_DISK:-8G}"
}

start() {
    local port=${1:-2222} accel=${SNDR_VM_ACCEL:-tcg,thread=multi}
    echo "[127.0.0.1]:$port $(cut -d' ' -f1,2 "$folder/host_key.pub")" >"$folder/known_hosts"
    for name in worker tenant admin root; do
        printf 'Host vm-%s\n  HostName 127.0.0.1\n  Port %s\n  User %s\n  IdentityFile %s\n  IdentitiesOnly yes\n' \
            "$name" "$port" "$name" "$folder/key"
        printf '  UserKnownHostsFile %s\n' "$folder/known_hosts"
    done >"$folder/ssh_config"
    exec qemu-system-x86_64 -accel "$accel" -cpu max -m 3G -smp 2 -display none -serial "file:$folder/console.log" \
        -kernel "$folder/vmlinuz" -initrd "$folder/initrd" -append "root=/dev/vda rw console=ttyS0" \
        -drive "file=$folder/disk.img,if=virtio,format=raw" -device virtio-rng-pci \
        -nic "user,model=virtio-net-pci,restrict=on,hostfwd=tcp:127.0.0.1:$port-:22" -pidfile "$folder/pid"
}

case $what in
    make) make_disk "${@:3}" ;;
    start) start "${@:3}" ;;
    *) echo "usage: packaging/vm/machine.sh make|start FOLDER" >&2; exit 2 ;;
esac
