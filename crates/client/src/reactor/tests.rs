//! The event loop by itself: turns, alarms, sockets, other threads.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use super::*;

fn wait<T>(future: impl Future<Output = T>) -> T {
    block_on(future).expect("an event loop")
}

/// A socket of the loop and what is at its other end.
fn pair() -> (Socket, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("sockets");
    ours.set_nonblocking(true).expect("non-blocking");
    (Socket::over(OwnedFd::from(ours)).expect("registered"), theirs)
}

#[test]
fn tasks_take_turns_until_the_main_one_ends_and_are_dropped_then() {
    let told: Rc<RefCell<Vec<usize>>> = Rc::default();
    let kept = Rc::new(());
    wait(async {
        let tasks: Vec<_> = (0..3)
            .map(|number| {
                let (told, kept) = (Rc::clone(&told), Rc::clone(&kept));
                spawn(async move {
                    let _kept = kept;
                    loop {
                        told.borrow_mut().push(number);
                        yield_now().await;
                    }
                })
            })
            .collect();
        while told.borrow().len() < 9 {
            yield_now().await;
        }
        // Not waited for: the loop's end drops what still runs.
        std::mem::forget(tasks);
    });
    assert_eq!(told.borrow()[..6], [0, 1, 2, 0, 1, 2]);
    assert_eq!(Rc::strong_count(&kept), 1);
}

#[test]
fn a_task_ends_when_it_is_let_go_of_also_by_another_or_by_itself() {
    wait(async {
        let turns = Rc::new(Cell::new(0));
        let counting = |turns: &Rc<Cell<u32>>| {
            let turns = Rc::clone(turns);
            async move {
                loop {
                    turns.set(turns.get() + 1);
                    yield_now().await;
                }
            }
        };
        let place: Rc<RefCell<Option<Task>>> = Rc::default();
        let own = Rc::clone(&place);
        let ending = spawn(async move {
            let held = spawn(std::future::pending());
            yield_now().await;
            own.borrow_mut().take();
            drop(held);
            std::future::pending::<()>().await;
        });
        *place.borrow_mut() = Some(ending);
        let counter = spawn(counting(&turns));
        while turns.get() < 3 {
            yield_now().await;
        }
        assert!(place.borrow().is_none());
        drop(counter);
        let then = turns.get();
        for _ in 0..3 {
            yield_now().await;
        }
        assert_eq!(turns.get(), then);
    });
}

#[test]
fn a_word_from_another_thread_ends_the_loops_sleep() {
    let (tell, mut told) = tokio::sync::watch::channel(0);
    let (ready, is_ready) = std::sync::mpsc::channel();
    let other = std::thread::spawn(move || {
        for number in 1..=100 {
            is_ready.recv().expect("asked");
            tell.send_replace(number);
        }
    });
    wait(async {
        for number in 1..=100 {
            ready.send(()).expect("listened to");
            told.wait_for(|told| *told == number).await.expect("told");
        }
    });
    other.join().expect("ended");
}

#[test]
fn alarms_go_off_in_order_never_early_and_not_after_they_were_let_go_of() {
    wait(async {
        let begun = Instant::now();
        let told: Rc<RefCell<Vec<u64>>> = Rc::default();
        let tasks: Vec<_> = [30, 5, 0, 15, 5]
            .into_iter()
            .map(|after_ms| {
                let told = Rc::clone(&told);
                let moment = begun + Duration::from_millis(after_ms);
                spawn(async move {
                    sleep_until(moment).await;
                    assert!(Instant::now() >= moment);
                    told.borrow_mut().push(after_ms);
                })
            })
            .collect();
        assert_eq!(timeout(Duration::from_millis(1), std::future::pending::<()>()).await, Err(Elapsed));
        assert_eq!(timeout(Duration::MAX, async { 7 }).await, Ok(7));
        while told.borrow().len() < 5 {
            sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(*told.borrow(), [0, 5, 5, 15, 30]);
        drop(tasks);
        assert!(core().timers.is_empty(), "an alarm is left behind");
    });
}

#[test]
fn bytes_come_and_go_whole_however_little_room_there_is() {
    wait(async {
        let (ours, mut theirs) = pair();
        let sent: Vec<u8> = (0..3 << 20).map(|place: u32| (place % 251) as u8).collect();
        let expected = sent.clone();
        // Reads late and in small pieces, so that there is no room again and again; then sends it all back.
        let other = std::thread::spawn(move || {
            let mut seen = vec![0; expected.len()];
            theirs.read_exact(&mut seen).expect("bytes");
            assert!(seen == expected);
            theirs.write_all(&seen).expect("room");
        });
        ours.write_all(&sent).await.expect("room");
        let mut seen = vec![0; sent.len()];
        ours.read_exact(&mut seen).await.expect("bytes");
        assert!(seen == sent);
        other.join().expect("ended");
        let end = poll_fn(|context| ours.poll_read(context, &mut [0; 9])).await;
        assert_eq!(end.expect("end"), 0, "the other side has gone");
    });
}

#[test]
fn the_last_bytes_of_a_side_that_has_gone_are_read_before_its_end() {
    wait(async {
        let (ours, mut theirs) = pair();
        theirs.write_all(b"last words").expect("room");
        drop(theirs);
        for expected in ["last ", "words", ""] {
            let mut space = [0; 5];
            let count = poll_fn(|context| ours.poll_read(context, &mut space)).await.expect("bytes");
            assert_eq!(&space[..count], expected.as_bytes());
        }
        assert!(ours.write_all(b"nobody").await.is_err());
    });
}

#[test]
fn a_socket_whose_number_is_anothers_now_is_not_woken_for_it() {
    wait(async {
        for _ in 0..3 {
            let (ours, mut theirs) = pair();
            let unread =
                poll_fn(|context| Poll::Ready(ours.poll_read(context, &mut [0; 1]).is_pending())).await;
            assert!(unread, "what its forerunner had to read is not its own");
            theirs.write_all(b"xy").expect("room");
            poll_fn(|context| ours.poll_read(context, &mut [0; 1])).await.expect("a byte");
        }
    });
}

#[test]
fn where_nobody_listens_connecting_fails() {
    wait(async {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        Socket::connect_tcp(address).await.map(drop).expect("somebody listens");
        drop(listener);
        let refused = Socket::connect_tcp(address).await.map(drop).expect_err("nobody listens");
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        let missing =
            Socket::connect_unix("/nowhere/at/all".as_ref()).await.map(drop).expect_err("no socket");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    });
}

#[test]
fn a_thread_has_one_loop_at_a_time() {
    wait(async { assert!(block_on(async {}).is_err()) });
    wait(async {});
}
