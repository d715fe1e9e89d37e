//! A future whose panics become values, and which can be dropped before its end.
//!
//! With it a handler runs in the task of its slot: a panic ends the run, and neither the slot nor the worker.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// The text of a panic.
pub type Panicked = String;

/// Polls `future`, and drops it when it ends; pending for ever after that. A state that a panic leaves half done is
/// never read, since the future is dropped with it.
pub fn poll<F: Future>(
    mut future: Pin<&mut Option<F>>,
    cx: &mut Context<'_>,
) -> Poll<Result<F::Output, Panicked>> {
    let Some(running) = future.as_mut().as_pin_mut() else { return Poll::Pending };
    let done = match catch_unwind(AssertUnwindSafe(|| running.poll(cx))) {
        Ok(Poll::Pending) => return Poll::Pending,
        Ok(Poll::Ready(output)) => Ok(output),
        Err(panic) => Err(message(&*panic)),
    };
    let dropped = drop_in_place(future);
    Poll::Ready(done.and_then(|output| dropped.map(|()| output)))
}

/// Drops a future where it is.
///
/// # Errors
/// A value in the future panics when it is dropped.
pub fn drop_in_place<F>(mut future: Pin<&mut Option<F>>) -> Result<(), Panicked> {
    catch_unwind(AssertUnwindSafe(|| future.set(None))).map_err(|panic| message(&*panic))
}

fn message(panic: &(dyn Any + Send)) -> Panicked {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a text").to_owned()
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Waker;

    use super::*;

    fn polled<F: Future>(future: F) -> Poll<Result<F::Output, Panicked>> {
        let mut future = pin!(Some(future));
        let mut cx = Context::from_waker(Waker::noop());
        let polled = poll(future.as_mut(), &mut cx);
        assert_eq!(future.is_some(), polled.is_pending());
        assert!(future.is_some() || poll(future.as_mut(), &mut cx).is_pending());
        polled
    }

    struct Loud;
    impl Drop for Loud {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }

    #[test]
    fn a_panic_is_a_value_wherever_it_comes_from() {
        assert_eq!(polled(async { 7 }), Poll::Ready(Ok(7)));
        assert_eq!(polled(std::future::pending::<()>()), Poll::Pending);
        let text = polled(async { panic!("out of {}", "luck") });
        assert_eq!(text, Poll::Ready(Err::<(), _>("out of luck".to_owned())));
        let other = polled(async { std::panic::panic_any(7) });
        assert_eq!(other, Poll::Ready(Err::<(), _>("without a text".to_owned())));
        let loud = Loud;
        let ended = polled(std::future::poll_fn(move |_| {
            let _here = &loud;
            Poll::Ready(())
        }));
        assert_eq!(ended, Poll::Ready(Err("dropped".to_owned())));
    }

    #[test]
    fn a_panic_of_what_is_dropped_early_is_told() {
        let loud = Loud;
        let mut future = pin!(Some(async move {
            let _here = loud;
            std::future::pending::<()>().await
        }));
        assert_eq!(drop_in_place(future.as_mut()), Err("dropped".to_owned()));
        assert!(future.is_none());
    }
}
