//! What programs may expect of a network, held against a plain veth pair, the fabric and the kernel's own path beside it: if
//! the first fails, the test is wrong; if only another does, that one is.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use lab::probe;

use crate::joined::End;

/// An expectation's name, and how it is tried between a client's place and a server's.
type Expectation = (&'static str, fn(&End, &End));

pub const CONTRACT: &[Expectation] = &[
    ("a_stream_arrives_whole_both_ways_at_once_and_outlives_half_of_itself", streams_arrive_whole),
    ("many_connections_do_not_mix", many_connections),
    ("datagrams_keep_their_boundaries_at_every_size", datagrams_keep_boundaries),
    ("echo_requests_are_answered", echo_is_answered),
    ("a_packet_too_large_is_refused_to_its_sender_when_it_must_stay_whole", too_large_is_refused),
    ("a_closed_port_says_so", closed_port_says_so),
    ("an_address_that_nobody_has_is_no_closed_port", nobody_is_silent),
];

/// Longer than anything here takes; silence takes it whole.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long to listen for something that must not come.
const SILENCE: Duration = Duration::from_secs(1);

/// Bytes in no order, the same for the same seed.
fn bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..count).map(|_| next()).collect()
}

fn listen(end: &End, address: IpAddr) -> (TcpListener, SocketAddr) {
    let listener = end.inside(|| TcpListener::bind((address, 0)).expect("a listener"));
    let target = listener.local_addr().expect("its address");
    (listener, target)
}

fn connect(end: &End, target: SocketAddr) -> TcpStream {
    let stream = end.inside(|| TcpStream::connect_timeout(&target, PATIENCE).expect("a connection"));
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    stream
}

fn udp(end: &End, address: IpAddr) -> UdpSocket {
    let socket = end.inside(|| UdpSocket::bind((address, 0)).expect("a socket"));
    socket.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    socket
}

fn streams_arrive_whole(client: &End, server: &End) {
    const BYTES: usize = 8_000_000;
    for address in server.addresses {
        let (listener, target) = listen(server, address);
        let (there, back, last) = (bytes(1, BYTES), bytes(2, BYTES), bytes(3, 100_000));
        std::thread::scope(|scope| {
            let serving = scope.spawn(|| {
                let (mut stream, _) = listener.accept().expect("a connection");
                let mut writer = stream.try_clone().expect("a second handle");
                let (back, last) = (&back, &last);
                scope.spawn(move || writer.write_all(back).expect("all sent")).join().expect("the writer");
                let mut received = Vec::new();
                stream.read_to_end(&mut received).expect("bytes");
                // The client has closed its half by now; this half still works.
                stream.write_all(last).expect("all sent");
                received
            });
            let mut stream = connect(client, target);
            let mut writer = stream.try_clone().expect("a second handle");
            let there = &there;
            let sending = scope.spawn(move || {
                writer.write_all(there).expect("all sent");
                writer.shutdown(Shutdown::Write).expect("half closed");
            });
            let mut received = Vec::new();
            stream.read_to_end(&mut received).expect("bytes");
            sending.join().expect("the sender");
            assert!(serving.join().expect("the server") == *there, "{address}: what arrived there differs");
            assert!(received == [&back[..], &last].concat(), "{address}: what arrived back differs");
        });
    }
}

fn many_connections(client: &End, server: &End) {
    const CONNECTIONS: u64 = 200;
    for address in server.addresses {
        let (listener, target) = listen(server, address);
        std::thread::scope(|scope| {
            let serving = scope.spawn(move || {
                let streams: Vec<_> =
                    (0..CONNECTIONS).map(|_| listener.accept().expect("a connection").0).collect();
                for mut stream in streams {
                    let mut received = Vec::new();
                    stream.read_to_end(&mut received).expect("bytes");
                    stream.write_all(&received).expect("all sent");
                }
            });
            let mut streams: Vec<_> = (0..CONNECTIONS).map(|_| connect(client, target)).collect();
            for (seed, stream) in streams.iter_mut().enumerate() {
                stream.write_all(&bytes(seed as u64, 10_000)).expect("all sent");
                stream.shutdown(Shutdown::Write).expect("half closed");
            }
            for (seed, stream) in streams.iter_mut().enumerate() {
                let mut received = Vec::new();
                stream.read_to_end(&mut received).expect("bytes");
                assert!(received == bytes(seed as u64, 10_000), "{address}: connection {seed}");
            }
            serving.join().expect("the server");
        });
    }
}

fn datagrams_keep_boundaries(client: &End, server: &End) {
    for (from, to) in client.addresses.into_iter().zip(server.addresses) {
        let (sender, receiver) = (udp(client, from), udp(server, to));
        let target = receiver.local_addr().expect("its address");
        // Around the largest that fits one packet of 1500 bytes, and those that travel in fragments.
        for size in [0, 1, 2, 63, 64, 1000, 1451, 1452, 1453, 1471, 1472, 1473, 2961, 9000, 30_001, 65_507] {
            let sent = bytes(size as u64, size);
            assert_eq!(sender.send_to(&sent, target).expect("sent"), size);
            let mut buffer = vec![0; 70_000];
            let (length, source) = receiver.recv_from(&mut buffer).expect("a datagram");
            assert!(buffer[..length] == sent[..], "{to}: {size} bytes became {length} or others");
            assert_eq!(source, sender.local_addr().expect("its address"));
        }
    }
}

fn echo_is_answered(client: &End, server: &End) {
    for address in server.addresses {
        let answered = client.inside(|| probe::echo(address, SILENCE, PATIENCE).expect("asked"));
        assert!(answered.is_some(), "{address} is silent");
    }
}

/// Asks the kernel never to fragment what this socket sends, nor to let others.
pub fn keep_whole(socket: &UdpSocket) {
    discover_path_mtu(socket, libc::IP_PMTUDISC_DO);
}

/// Lets whoever must fragment what this socket sends.
pub fn let_fragment(socket: &UdpSocket) {
    discover_path_mtu(socket, libc::IP_PMTUDISC_DONT);
}

/// Both versions give their choices the same numbers.
fn discover_path_mtu(socket: &UdpSocket, value: libc::c_int) {
    let (level, option) = match socket.local_addr().expect("its address") {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER),
    };
    // SAFETY: the descriptor is open; the value is a live local, as long as said.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

fn too_large_is_refused(client: &End, server: &End) {
    for ((from, to), header_bytes) in client.addresses.into_iter().zip(server.addresses).zip([28, 48]) {
        let (sender, receiver) = (udp(client, from), udp(server, to));
        let target = receiver.local_addr().expect("its address");
        keep_whole(&sender);
        let refused = sender.send_to(&vec![1; 1501 - header_bytes], target).expect_err("too large");
        assert_eq!(refused.raw_os_error(), Some(libc::EMSGSIZE), "{to}: {refused}");
        sender.send_to(&vec![2; 1500 - header_bytes], target).expect("as large as may be");
        let mut buffer = vec![0; 2000];
        assert_eq!(receiver.recv(&mut buffer).expect("a datagram"), 1500 - header_bytes);
        assert_eq!(buffer[0], 2, "{to}: the one refused came all the same");
    }
}

fn closed_port_says_so(client: &End, server: &End) {
    for (from, to) in client.addresses.into_iter().zip(server.addresses) {
        // A port that was open a moment ago is closed now.
        let (listener, target) = listen(server, to);
        drop(listener);
        let refused = client.inside(|| TcpStream::connect_timeout(&target, PATIENCE)).expect_err("closed");
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused, "{to}: {refused}");
        let sender = udp(client, from);
        sender.connect(target).expect("a target");
        sender.send(b"?").expect("sent");
        let refused = sender.recv(&mut [0; 10]).expect_err("nobody answers");
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused, "{to}: {refused}");
    }
}

fn nobody_is_silent(client: &End, _server: &End) {
    for address in client.nobody {
        let tried = client.inside(|| TcpStream::connect_timeout(&(address, 5432).into(), SILENCE));
        let error = tried.expect_err("nobody is there");
        assert!(
            matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::HostUnreachable),
            "{address}: {error}: as if somebody were there"
        );
    }
}
