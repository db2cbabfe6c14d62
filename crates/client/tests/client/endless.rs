//! Servers that never end their answer: every call ends, in bounded memory, and what may have been committed is not called
//! failed.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use client::SessionError;
use client::postgres::{Encryption, PostgresClient, Settings};
use client::reactor::block_on;
use history::ErrorClass;

/// Authenticated, idle.
const WELCOME: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";
/// A row of one cell, `x`.
const ROW: &[u8] = b"D\0\0\0\x0b\0\x01\0\0\0\x01x";
const NOTICE: &[u8] = b"N\0\0\0\x0eSWARNING\0\0";

/// A server that greets one client, reads its question and then does what `answers` does until the client goes away.
fn server(answers: impl FnOnce(&mut TcpStream) -> std::io::Result<()> + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut question = [0; 4096];
        let _ = stream.read(&mut question).expect("a start-up");
        stream.write_all(WELCOME).expect("greeted");
        let _ = stream.read(&mut question).expect("a question");
        // It ends when the client has gone away.
        let _ = answers(&mut stream);
    });
    address
}

/// Sends the same over and over.
fn endless(piece: &'static [u8]) -> impl FnOnce(&mut TcpStream) -> std::io::Result<()> + Send + 'static {
    let pieces = piece.repeat(8192);
    move |stream| loop {
        stream.write_all(&pieces)?;
    }
}

fn settings(timeout: Duration) -> Settings {
    Settings {
        database: "d".into(),
        user: "u".into(),
        password: None,
        encryption: Encryption::Never,
        is_compatible: false,
        timeout,
        connect_timeout: Duration::from_secs(10),
    }
}

fn asked(address: SocketAddr, timeout: Duration) -> SessionError {
    let session = async {
        let mut client = PostgresClient::connect_tcp(address, &settings(timeout)).await.expect("connected");
        client.simple_query("INSERT INTO t VALUES (1)").await.expect_err("no end")
    };
    block_on(session).expect("an event loop")
}

const LONG: Duration = Duration::from_secs(600);

#[test]
fn endless_rows_are_given_up_at_a_length_and_left_open() {
    let error = asked(server(endless(ROW)), LONG);
    assert!(error.message.contains("the answer is longer than 67108864 bytes"), "{error:?}");
    assert_eq!((error.class, error.definite), (ErrorClass::Connection, false));
}

#[test]
fn endless_notices_are_given_up_as_well() {
    let error = asked(server(endless(NOTICE)), LONG);
    assert!(error.message.contains("the answer is longer"), "{error:?}");
    assert!(!error.definite);
}

#[test]
fn a_message_that_announces_more_than_any_answer_has_is_not_waited_for() {
    let announced = |stream: &mut TcpStream| {
        stream.write_all(b"D\x7f\xff\xff\xff")?;
        std::thread::sleep(LONG);
        Ok(())
    };
    let error = asked(server(announced), LONG);
    assert!(error.message.contains("a message of 2147483647 bytes is announced"), "{error:?}");
    assert!(!error.definite);
}

#[test]
fn an_answer_that_comes_byte_by_byte_is_waited_for_no_longer_than_asked() {
    let trickle = |stream: &mut TcpStream| loop {
        for byte in ROW {
            stream.write_all(&[*byte])?;
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let error = asked(server(trickle), Duration::from_millis(300));
    assert_eq!((error.class, error.definite), (ErrorClass::Timeout, false), "{error:?}");
}

/// A server that sends faster than it can be read leaves the time limit, and other clients of the thread, their turn.
#[test]
fn the_time_limit_holds_while_an_answer_pours_in() {
    let slow_flood = |stream: &mut TcpStream| loop {
        stream.write_all(&ROW.repeat(16))?;
        std::thread::yield_now();
    };
    let error = asked(server(slow_flood), Duration::from_millis(1));
    assert!(!error.definite, "{error:?}");
    assert_eq!(error.class, ErrorClass::Timeout, "{error:?}");
}

#[test]
fn a_start_up_without_end_is_over_with_its_time() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let _ = endless(NOTICE)(&mut stream);
    });
    let limited = Settings { connect_timeout: Duration::from_millis(200), ..settings(LONG) };
    let error = block_on(async { PostgresClient::connect_tcp(address, &limited).await.err() });
    let error = error.expect("an event loop").expect("no session");
    assert!(error.definite, "{error:?}");
}
