//! Tells a guard until when CMD may run, and detects a guard that does not listen.
//!
//! A guard that was stopped (SIGSTOP) would not end CMD if this process were stopped too. So a guard that has not taken
//! in a heartbeat by the time at which it would have had to end CMD counts as killed.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use tenure::keeper::LeaseWatch;
use tenure::lease_clock::LeaseTime;
use tokio::sync::watch;

use super::wire::{self, LeaseTimes};

/// The connection to a guard, with the pings that it answered.
#[derive(Clone)]
pub struct GuardVoice {
    pub socket: Arc<UnixStream>,
    /// Number of the last ping. Starts at 0, which no ping has.
    pings: Arc<AtomicI32>,
    /// Number of the last ping that was answered.
    heard: watch::Receiver<i32>,
}

impl GuardVoice {
    /// `heard` has the number of the last answered ping.
    pub fn new(socket: UnixStream, heard: watch::Receiver<i32>) -> Self {
        GuardVoice { socket: Arc::new(socket), pings: Arc::default(), heard }
    }

    /// Asks the guard to confirm all earlier messages. The listener notices a guard that is gone.
    pub fn ping(&self) -> i32 {
        let number = self.pings.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let _ = wire::tell_ping(&self.socket, number);
        number
    }

    /// Waits until this ping is answered.
    pub async fn heard(&self, ping: i32) {
        let mut confirmed = self.heard.clone();
        if confirmed.wait_for(|confirmed| *confirmed >= ping).await.is_err() {
            // The listener is gone, and has reported the reason.
            std::future::pending().await
        }
    }
}

/// Until when CMD may run.
pub struct Feed {
    lease: LeaseWatch,
}

impl Feed {
    /// Feeds the times of this lease.
    pub fn of(lease: LeaseWatch) -> Self {
        Feed { lease }
    }

    /// Sends the guard the current times, and returns until when CMD may run.
    ///
    /// # Errors
    /// The guard is gone.
    pub fn tell(&self, socket: &UnixStream) -> io::Result<LeaseTime> {
        let (stop, limit) = (self.lease.stop_by(), self.lease.hard_limit());
        let times = LeaseTimes { stop_by: stop.since_start(), kill_by: limit.since_start() };
        wire::tell_lease(socket, times)?;
        Ok(stop)
    }

    /// Waits for this moment.
    pub async fn comes(&self, at: LeaseTime) {
        self.lease.comes(at).await;
    }

    /// Sends the times again with every answered heartbeat; the guard has `sent` already. Returns when the guard does not
    /// listen.
    pub async fn go_on(self, voice: &GuardVoice, sent: LeaseTime) {
        // The time that the guard was sent last, and the last one that it confirmed.
        let (mut sent, mut confirmed) = (sent, sent);
        let mut unconfirmed: Option<(i32, LeaseTime)> = None;
        loop {
            let answer = async move {
                match unconfirmed {
                    Some((ping, stop_by)) => {
                        voice.heard(ping).await;
                        stop_by
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                stop_by = answer => {
                    confirmed = stop_by;
                    unconfirmed = None;
                    if sent != confirmed {
                        unconfirmed = Some((voice.ping(), sent));
                    }
                }
                () = self.lease.moved_from(sent) => {
                    let Ok(stop_by) = self.tell(&voice.socket) else { return };
                    sent = stop_by;
                    unconfirmed.get_or_insert_with(|| (voice.ping(), stop_by));
                }
                // Without a later time it would have ended CMD by now.
                () = self.comes(confirmed), if unconfirmed.is_some() => return,
            }
        }
    }
}
