# SPDX-License-Identifier: GPL-2.0
"""An emulated USB stick for a whole system: a server of network block devices (NBD), which QEMU
shows the guest as a drive with model and serial number. It maps erase blocks, one of which is open:
to write elsewhere, or backwards, costs a copy of the rest of the block. It serves one request
after the other, in the host's time."""
import asyncio
import os
import struct
import threading

ERASE_BLOCK = 1 << 20
# Seconds of each request, of a byte read or written, and of another erase block.
REQUEST_S, READ_S, WRITE_S, SWITCH_S = 0.3e-3, 1 / 30e6, 1 / 20e6, 25e-3
READ, WRITE, DISCONNECT, FLUSH = range(4)
OPTION_GO, OPTION_ABORT = 7, 2
REPLY_ACK, REPLY_INFO, REPLY_UNSUPPORTED = 1, 3, (1 << 31) | 1
# The server has flags, and flushes.
FLAGS = 1 | 4


class Stick:
    """A stick whose data are in the file @path, at the socket @socket; for a with statement."""

    def __init__(self, path, size, socket):
        self.path, self.size, self.socket = path, size, socket
        self.loop = asyncio.new_event_loop()
        self.free = 0.0
        self.open_block, self.position = None, 0

    def __enter__(self):
        self.file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        os.ftruncate(self.file, self.size)
        self.server = self.loop.run_until_complete(
            asyncio.start_unix_server(self.connected, self.socket))
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.server.close()
        self.loop.close()
        os.close(self.file)

    def seconds(self, kind, offset, length):
        """Return how long a request takes."""
        if kind == READ:
            return REQUEST_S + length * READ_S
        if kind != WRITE:
            return REQUEST_S
        blocks = range(offset // ERASE_BLOCK, (offset + length - 1) // ERASE_BLOCK + 1)
        switches = len(blocks) - (blocks[0] == self.open_block and offset >= self.position)
        self.open_block, self.position = blocks[-1], offset + length
        return REQUEST_S + length * WRITE_S + switches * SWITCH_S

    async def connected(self, reader, writer):
        """Serve a client until it leaves."""
        try:
            await self.greet(reader, writer)
            while await self.serve(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()

    async def greet(self, reader, writer):
        """Agree on the only export."""
        writer.write(b"NBDMAGICIHAVEOPT" + struct.pack(">H", 1))
        await reader.readexactly(4)
        while True:
            _, option, length = struct.unpack(">8sII", await reader.readexactly(16))
            await reader.readexactly(length)
            if option == OPTION_ABORT:
                raise ConnectionError
            if option == OPTION_GO:
                self.reply(writer, option, REPLY_INFO, struct.pack(">HQH", 0, self.size, FLAGS))
                self.reply(writer, option, REPLY_ACK)
                return
            self.reply(writer, option, REPLY_UNSUPPORTED)

    @staticmethod
    def reply(writer, option, kind, data=b""):
        """Answer an option."""
        writer.write(struct.pack(">QIII", 0x3e889045565a9, option, kind, len(data)) + data)

    async def serve(self, reader, writer):
        """Serve a request; return False at the last one."""
        _, _, kind, handle, offset, length = struct.unpack(">IHHQQI", await reader.readexactly(28))
        if kind == DISCONNECT:
            return False
        data = await reader.readexactly(length) if kind == WRITE else b""
        self.free = max(self.free, self.loop.time()) + self.seconds(kind, offset, length)
        await asyncio.sleep(self.free - self.loop.time())
        if kind == WRITE:
            os.pwrite(self.file, data, offset)
        answer = os.pread(self.file, length, offset) if kind == READ else b""
        writer.write(struct.pack(">IIQ", 0x67446698, 0, handle) + answer)
        await writer.drain()
        return True
