"""What a plan of a transfer looks like on the command line."""

from engine_host.cli.remote.transfers import transfer_lines
from engine_host.protocol.remote.transfers import FileStanding, ModelTransferPlan, TransferFile, TransferWay


def test_each_file_says_how_it_stands() -> None:
    files = (
        TransferFile(name="a.gguf", size=1024, standing=FileStanding.NEW),
        TransferFile(name="b.gguf", size=1024, standing=FileStanding.PART, there=512),
        TransferFile(name="c.gguf", size=1024, standing=FileStanding.OTHER),
        TransferFile(name="d.gguf", size=1024, standing=FileStanding.SAME, there=1024),
    )
    plan = ModelTransferPlan(
        host="gpu", way=TransferWay.SEND, model="m", source="/m", folder="/there", files=files, size=4096,
        left=2560, free=1 << 30,
    )  # fmt: skip
    lines = transfer_lines(plan)
    assert [line[:8] for line in lines[1:5]] == ["+ a.gguf", "+ b.gguf", "~ c.gguf", "  d.gguf"]
    assert "512 B of it are there" in lines[2]
    assert lines[-1] == "2.5 KiB to carry; 1.0 GiB are free."
    nothing = plan.model_copy(update={"left": 0})
    assert transfer_lines(nothing)[-1] == "Nothing to transfer."
