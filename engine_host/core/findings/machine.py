"""Findings about a machine: why none of its GPUs is listed, and what to do about it."""

from engine_host.core.findings.text import INFO, WARNING, Text

_KERNEL_LOG = "sudo dmesg | grep -iE 'nvrm|xid'"

MACHINE = {
    "gpu_absent/no_device": Text(
        INFO, "No GPU was found: none is on the PCI bus.", fix="Models run on the CPU."
    ),
    "gpu_absent/no_device/unseen": Text(
        INFO,
        "No GPU was found: NVIDIA's driver is not there, and no PCI bus is shown to look at.",
        fix="Models run on the CPU.",
    ),
    "gpu_absent/no_device/driver": Text(
        WARNING,
        "NVIDIA's driver is installed, and no GPU of NVIDIA's is on the PCI bus.",
        fix="See that the GPU is seated and powered, or that the virtual machine was given one.",
        command="lspci -nn -d 10de:",
    ),
    "gpu_absent/no_driver": Text(
        WARNING,
        "An NVIDIA GPU is there ({cards}), and NVIDIA's driver is not installed.",
        fix="Install the driver from the system's packages or nvidia.com/drivers, and restart the machine.",
    ),
    "gpu_absent/no_driver/library": Text(
        WARNING,
        "NVIDIA's kernel module {module} is loaded, and the driver's library and programs are not found.",
        fix="Install the part of the driver that belongs to that module, of the same version.",
    ),
    "gpu_absent/no_driver/wsl": Text(
        WARNING,
        "This is Linux on Windows, and no NVIDIA driver of Windows reaches it.",
        fix="Where there is an NVIDIA GPU, install its driver in Windows and not here; then run "
        "`wsl --update` and `wsl --shutdown` there.",
    ),
    "gpu_absent/not_loaded": Text(
        WARNING,
        "NVIDIA's driver is installed, and its kernel module is not loaded ({cards}).",
        fix="Load it. Where that fails, it was not built for this kernel, or Secure Boot refuses it: the "
        "kernel's log says which.",
        command="sudo modprobe nvidia",
    ),
    "gpu_absent/no_device_node": Text(
        WARNING,
        "NVIDIA's kernel module {module} is loaded, and there is no device file /dev/nvidia*.",
        fix="Make the device files.",
        command="sudo nvidia-modprobe -u -c=0",
    ),
    "gpu_absent/versions_differ": Text(
        WARNING,
        "NVIDIA's driver library[ {library}] and the loaded kernel module[ {module}] differ in version.",
        fix="Restart the machine: the driver was updated, and the module from before is still loaded.",
        command="sudo reboot",
    ),
    "gpu_absent/versions_differ/container": Text(
        WARNING,
        "The driver library[ {library}] in this container is not of the version of the machine's kernel "
        "module[ {module}].",
        fix="Start the container anew: it then gets the library of the driver that is loaded.",
    ),
    "gpu_absent/in_container": Text(
        WARNING,
        "The machine has an NVIDIA GPU ({shown_by}), and this container ({container}) runs without it.",
        fix="Install NVIDIA's container toolkit on the machine, and start the container with --gpus all "
        "(Podman: --device nvidia.com/gpu=all).",
    ),
    "gpu_absent/no_permission": Text(
        WARNING,
        "{user} may not open the device files of NVIDIA's driver: {paths}.",
        fix="Join their group, {group}, and log in anew.",
        command="sudo usermod -aG {group} {user}",
    ),
    "gpu_absent/no_permission/files": Text(
        WARNING,
        "{user} may not open the device files of NVIDIA's driver: {paths}.",
        fix="NVIDIA's driver lets everybody open them by itself; an administrator sets that again.",
        command="sudo chmod a+rw {paths}",
    ),
    "gpu_absent/no_permission/container": Text(
        WARNING,
        "This container ({container}) may not open the device files of NVIDIA's driver[: {paths}].",
        fix="Start it anew with the GPU: reloading systemd on the machine takes it from running containers.",
    ),
    "gpu_absent/no_permission/driver": Text(
        WARNING,
        "NVIDIA's driver refuses {user}: {call}.",
        fix="Ask as a user whom the administrator of the machine permits to use its GPUs.",
    ),
    "gpu_absent/other_driver": Text(
        WARNING,
        "The NVIDIA GPU ({cards}) is driven by {driver}, not by NVIDIA's driver.",
        fix="Keep {driver} from being loaded, as NVIDIA's packages do, and restart the machine.",
        command="lsmod | grep -E 'nouveau|nvidia'",
    ),
    "gpu_absent/other_driver/kept": Text(
        WARNING,
        "The NVIDIA GPU ({cards}) is kept for a virtual machine by {driver}.",
        fix="Run the host in that virtual machine, or give the GPU back to NVIDIA's driver.",
    ),
    "gpu_absent/other_maker": Text(
        INFO,
        "The GPU ({cards}) is not NVIDIA's: its memory and load are not read.",
        fix="llama.cpp can compute on it by Vulkan.",
        command="sndr engine build llama.cpp --backend vulkan",
    ),
    "gpu_absent/apple": Text(
        INFO,
        "Apple's GPU is not read: its memory and load are not shown.",
        fix="llama.cpp computes on it where its build has Metal.",
    ),
    "gpu_absent/lists_none": Text(
        WARNING,
        "NVIDIA's driver[ {module}] answers, and lists no GPU.",
        fix="See that the GPU is powered and was not given away; the kernel's log names what failed.",
        command=_KERNEL_LOG,
    ),
    "gpu_absent/gpu_lost": Text(
        WARNING,
        "A GPU does not answer any more: it has fallen off its bus.",
        fix="Restart the machine. Where it happens again, look at power, heat and seating.",
        command=_KERNEL_LOG,
    ),
    "gpu_absent/driver_error": Text(
        WARNING,
        "NVIDIA's driver does not answer: {call}.",
        fix="Look into the kernel's log, and restart the machine where it names no other cause.",
        command=_KERNEL_LOG,
    ),
    "gpu_absent/no_reader": Text(
        WARNING,
        "The package that reads NVIDIA's driver, nvidia-ml-py, is not installed with this program.",
        fix="Install the program anew.",
    ),
}
