"""One rank: issues its operations by id, and meanwhile takes and serves whatever others send.

A message is a header and its bytes. All pieces that an operation moves to one target travel in one message:

    DATA   operation, target   the bytes of its pieces, one after the other; a notice has none
    ACK    operation           its data are in place, for those operations whose initiator waits for that
    GET    operation           send me the data of my get
    ENTER, GO                  a barrier: everyone enters at rank 0, which lets everyone go
"""

import hmac
import os
import selectors
import socket
import struct
import sys
import time
from multiprocessing.connection import Connection

import numpy as np

from linkwright.executor_api import LinkwrightError, Program

HEADER = struct.Struct("<BIIQ")  # verb, operation, target, bytes
DATA, ACK, GET, ENTER, GO = range(5)
LOST = 4  # exit status of a rank whose peer or leader has ended
JOIN_S, HELLO_S = 30.0, 5.0  # for all ranks to join; for one that has connected to say who it is


class Peer:
    """The connection to another rank, with what has not been sent and what has not been understood."""

    def __init__(self, link):
        link.setblocking(False)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.link, self.unsent, self.unread = link, bytearray(), bytearray()

    def flush(self):
        """Send what the connection takes now; whether that is all."""
        while self.unsent:
            try:
                del self.unsent[: self.link.send(self.unsent)]
            except BlockingIOError:
                return False
        return True

    def messages(self):
        """Every whole message that has come."""
        data = self.link.recv(1 << 20)
        if not data:
            raise ConnectionError
        self.unread += data
        while len(self.unread) >= HEADER.size:
            verb, operation, target, length = HEADER.unpack_from(self.unread)
            if len(self.unread) < HEADER.size + length:
                return
            payload = bytes(self.unread[HEADER.size : HEADER.size + length])
            del self.unread[: HEADER.size + length]
            yield verb, operation, target, payload


class Rank:
    """The memory and the connections of one rank."""

    def __init__(self, number, links, leader):
        self._me, self._peers = number, {other: Peer(link) for other, link in links.items()}
        self._selector = selectors.DefaultSelector()
        self._selector.register(leader, selectors.EVENT_READ)
        for other, peer in self._peers.items():
            self._selector.register(peer.link, selectors.EVENT_READ, other)
        self._arrived, self._left = set(), {}  # (operation, target); operation -> completions still to come
        self._entered, self._released = 0, False

    def prepare(self, question, seed, cpus):
        """Compile the program of a question, and fill the memory."""
        os.sched_setaffinity(0, {cpus[self._me]})
        self._program = program = Program.of(question, seed)
        self._mine = program.issued_by(self._me)
        waits = (wait for operation in program.operations for wait in operation.waits)
        self._acknowledged = {wait.operation for wait in waits if wait.moment == "done"}
        here = [each for each in program.operations if program.host(each.source) != self._me]
        self._expected = sum(program.host(target) == self._me for each in here for target in each.targets)
        self.fill()

    def fill(self):
        """Write the initial data."""
        self._memory = {each: self._program.initial(each) for each in self._program.hosted_by(self._me)}

    def check(self):
        """How many elements were compared; raises if one is wrong."""
        return sum(self._program.check(participant, memory) for participant, memory in self._memory.items())

    def run(self, count):
        """Repeat; the time of each repetition in ns."""
        times = []
        for _ in range(count):
            self._barrier()
            began = time.perf_counter_ns()
            for operation in self._mine:
                for wait in operation.waits:
                    self._wait(lambda wait=wait: self._observed(wait))
                self._issue(operation)
            self._wait(lambda: len(self._arrived) == self._expected)
            times.append(time.perf_counter_ns() - began)
            self._arrived.clear()  # nothing of the next repetition comes before this rank enters the barrier
        self._barrier()  # until all have finished, they may want something of this rank
        return times

    def _observed(self, wait):
        if wait.moment == "arrived":
            return (wait.operation, self._me) in self._arrived
        return wait.moment == "free" or not self._left.get(wait.operation)  # what is sent was copied: it is free

    def _issue(self, operation):
        if operation.kind == "get" and (owner := self._program.host(operation.source)) != self._me:
            self._left[operation.id] = 1
            self._send(owner, GET, operation.id, self._me)
            return
        away = [target for target in operation.targets if self._program.host(target) != self._me]
        self._left[operation.id] = len(away) if operation.id in self._acknowledged else 0
        bytes_of = {target: self._read(operation, target) for target in operation.targets}
        for target, payload in bytes_of.items():
            if target in away:
                self._send(self._program.host(target), DATA, operation.id, target, payload)
            else:
                self._write(operation, target, payload)
        for step in range(operation.work):
            _ = step

    def _read(self, operation, target):
        memory = self._memory[operation.source] if operation.pieces else b""
        return b"".join(memory[at : at + length].data for at, _, _, length in operation.pieces_to(target))

    def _write(self, operation, target, payload):
        data, first = np.frombuffer(payload, np.uint8), 0
        for _, _, at, length in operation.pieces_to(target):
            into, piece = self._memory[target][at : at + length], data[first : first + length]
            if operation.combine:
                self._program.combine(into, piece)
            else:
                into[:] = piece
            first += length

    def _take(self, other, verb, number, target, payload):
        if verb == ENTER:
            self._entered += 1
        elif verb == GO:
            self._released = True
        elif verb == ACK:
            self._left[number] -= 1
        elif verb == GET:
            self._send(other, DATA, number, target, self._read(self._program.operations[number], target))
        else:
            operation = self._program.operations[number]
            self._write(operation, target, payload)
            self._arrived.add((number, target))
            if operation.initiator == self._me:  # a get of this rank
                self._left[number] = 0
            elif number in self._acknowledged:
                self._send(other, ACK, number)

    def _barrier(self):
        others = range(1, self._program.ranks)
        if self._me:
            self._send(0, ENTER)
            self._wait(lambda: self._released)
            self._released = False
            return
        self._wait(lambda: self._entered == len(others))
        self._entered = 0
        for other in others:
            self._send(other, GO)

    def _send(self, other, verb, number=0, target=0, payload=b""):
        peer = self._peers[other]
        peer.unsent += HEADER.pack(verb, number, target, len(payload)) + payload
        self._watch(peer, other)

    def _watch(self, peer, other):
        """Send what can be sent; if something is left, look out for room."""
        events = selectors.EVENT_READ | (0 if peer.flush() else selectors.EVENT_WRITE)
        if self._selector.get_key(peer.link).events != events:
            self._selector.modify(peer.link, events, other)

    def _wait(self, condition):
        """Send and receive until the condition holds."""
        while not condition():
            for key, events in self._selector.select():
                if key.data is None:  # the leader says nothing during a run, so it has ended
                    raise ConnectionError
                peer = self._peers[key.data]
                if events & selectors.EVENT_WRITE:
                    self._watch(peer, key.data)
                if events & selectors.EVENT_READ:
                    for message in peer.messages():
                        self._take(key.data, *message)


def joined(listener, number, ports, token):
    """The connections to all other ranks: to those below by connecting, to those above by being connected to."""
    links = {}
    for other in range(number):
        links[other] = socket.create_connection(("127.0.0.1", ports[other]), JOIN_S)
        links[other].sendall(token + bytes([number]))
    while len(links) < len(ports) - 1:
        link, _ = listener.accept()
        link.settimeout(HELLO_S)
        try:
            said = link.recv(len(token) + 1, socket.MSG_WAITALL)
        except TimeoutError:
            said = b""
        if hmac.compare_digest(said[:-1], token):
            links[said[-1]] = link
        else:
            link.close()  # a stranger
    return links


def main():
    """Join the others, then do what the leader says until it ends."""
    leader = Connection(int(sys.argv[1]))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(JOIN_S)
        leader.send(listener.getsockname()[1])
        number, ports, token = leader.recv()
        rank = Rank(number, joined(listener, number, ports, token), leader)
    leader.send(None)
    while True:
        verb, *arguments = leader.recv()
        try:
            answer = getattr(rank, verb)(*arguments)
        except LinkwrightError as error:
            answer = error
        leader.send(answer)


if __name__ == "__main__":
    try:
        main()
    except (EOFError, OSError):  # the leader or a peer has ended
        sys.exit(LOST)
