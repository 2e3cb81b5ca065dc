"""Which process listens, and what it sees: told from what the system says, here of a system that is made up."""

import os

import pytest

from nectar.dialects.spark.neighbours import is_neighbour

pytestmark = pytest.mark.small
PORT = 15002
SPARK = b"/usr/bin/java\0-cp\0jars/*\0org.apache.spark.deploy.SparkSubmit\0--class\0SparkConnectServer\0"


class System:
    """What /proc would hold."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "net").mkdir()
        self.sockets = []
        self.add("self", (), b"python\0")

    def add(self, name, inodes, command=SPARK, mounts="mnt:[1]", root="/"):
        process = self.folder / str(name)
        (process / "fd").mkdir(parents=True)
        (process / "ns").mkdir()
        for number, inode in enumerate(inodes):
            os.symlink(f"socket:[{inode}]", process / "fd" / str(number))
        os.symlink(mounts, process / "ns" / "mnt")
        os.symlink(root, process / "root")
        (process / "cmdline").write_bytes(command)

    def listen(self, inode, port=PORT, state="0A", table="tcp6"):
        line = f"  0: 0000000000000000FFFF00000100007F:{port:04X} 0000:0000 {state} 0:0 0:0 0 0 0 {inode} 1\n"
        with (self.folder / "net" / table).open("a") as file:
            file.write(line if file.tell() else "  sl  local_address ...\n" + line)

    def says(self, endpoint=f"127.0.0.1:{PORT}"):
        return is_neighbour(endpoint, self.folder)


@pytest.fixture
def system(tmp_path):
    return System(tmp_path)


def test_spark_of_this_machine_is_a_neighbour(system):
    system.listen(11)
    system.listen(99, port=80)
    system.listen(98, state="01")
    system.add(7, [5, 11])
    system.add(8, [99], command=b"nginx\0")
    assert system.says()
    assert system.says(f"localhost:{PORT}")
    assert not system.says("127.0.0.1:80")


@pytest.mark.parametrize(
    "unlike",
    [
        {"mounts": "mnt:[2]"},
        {"root": "/usr"},
        {"command": b"ssh\0-L\0" + b"15002:far:15002\0"},
        {"command": b"java\0-jar\0org.apache.spark.deploy.SparkSubmit.jar\0"},
        {"inodes": [12]},
    ],
)
def test_others_are_not(system, unlike):
    system.listen(11)
    system.add(7, **{"inodes": [11], **unlike})
    assert not system.says()


def test_all_that_listen_must_be_neighbours(system):
    system.listen(11)
    system.listen(12, table="tcp")
    system.add(7, [11])
    assert not system.says()  # who has the other is not told
    system.add(8, [12], command=b"socat\0")
    assert not system.says()


def test_a_socket_of_two_processes_is_that_of_both(system):
    system.listen(11)
    system.add(7, [11])
    system.add(8, [11], command=b"python\0")
    assert not system.says()


def test_an_address_of_another_machine_is_none_of_this_one(system):
    system.listen(11)
    system.add(7, [11])
    for endpoint in (
        f"example.org:{PORT}",
        f"10.0.0.1:{PORT}",
        "an unknown address",
        "127.0.0.1:",
        f"127.example.org:{PORT}",
    ):
        assert not system.says(endpoint)


def test_nothing_listens(system):
    system.add(7, [11])
    assert not system.says()


def test_a_system_that_tells_nothing(tmp_path):
    assert not is_neighbour(f"127.0.0.1:{PORT}", tmp_path / "no such folder")
