import pytest

from nectar.store.inputs.mounts import SystemMounts, table_of_mount, table_of_mountinfo

MOUNTINFO = r"""22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:21 / /proc rw - proc proc rw
24 22 0:40 / /data rw master:3 - nfs4 server:/data rw
25 24 7:0 / /data/image rw - squashfs /dev/loop0 ro
26 22 8:2 / /with\040space rw - vfat /dev/sdb1 rw
27 22 0:50 / /data/image rw - tmpfs tmpfs rw
"""
MOUNT = """/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
devfs on /dev (devfs, local, nobrowse)
/dev/disk4s1 on /Volumes/USB (old) stick (exfat, local, nodev)
//user@server/share on /Volumes/share (smbfs)
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/a", "ext4"), ("/data/a", "nfs4"), ("/data", "nfs4"), ("/database/a", "ext4"), ("/data/image/a", "tmpfs"),
     ("/with space/a", "vfat"), ("/proc/1/x", "proc")],
)  # fmt: skip
def test_longest_and_latest_mount_counts(path, kind):
    assert SystemMounts(lambda: table_of_mountinfo(MOUNTINFO)).kind(path, 1, 0.0) == kind


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/Users/a", "apfs"), ("/Volumes/USB (old) stick/a", "exfat"), ("/Volumes/share/a", "smbfs"), ("/dev/x", "devfs")],
)
def test_words_of_macos(path, kind):
    assert SystemMounts(lambda: table_of_mount(MOUNT)).kind(path, 1, 0.0) == kind


def test_nothing_known_is_no_kind():
    assert SystemMounts(list).kind("/a", 1, 0.0) == ""


def test_device_is_looked_up_again_after_a_while():
    """The number of an unmounted device is given to the next one."""
    tables = iter([[("/", "ext4")], [("/", "vfat")], [("/", "xfs")]])
    mounts = SystemMounts(lambda: next(tables))
    assert [mounts.kind("/a", 1, now) for now in (100.0, 104.9, 105.0, 50.0)] == ["ext4", "ext4", "vfat", "xfs"]
