//! A server's driver in the histories: calls, loads and answers for its owner, and the checks after each step.

use std::collections::VecDeque;

use tenure_core::time::Moment;

use super::judge::Violation;
use super::work::{Body, Change, Machine, TTL, chain, has, last};
use super::world::{Event, Loading, Message, Server, World};
use crate::election::{Action, Input, ServerWord};
use crate::ids::ServerId;
use crate::mutant::{Mutant, forgets};
use crate::scripts::{Append, Keys, Own, PieceCall, ScriptCall};

/// Numbers of calls that write pieces; the owner does not count these.
const PIECE_CALL: u64 = u64::MAX;

/// The whole content of a store, if it can be read without a gap.
fn history(keys: &Keys<Body>) -> Option<Vec<Change>> {
    let own = keys.own.as_ref()?;
    let from = snapshot(keys, own)?;
    let all = log(keys, from)?;
    (all.len() as u64 == own.tip.number && has(&chain(&all), own.tip)).then_some(all)
}

fn snapshot(keys: &Keys<Body>, own: &Own) -> Option<Vec<Change>> {
    let Some(named) = own.snapshot else { return Some(Vec::new()) };
    match keys.pieces.get(&(named.generation, 0)) {
        Some(Body::Everything(all)) if all.len() as u64 == named.tip.number => {
            has(&chain(all), named.tip).then(|| all.clone())
        }
        _ => None,
    }
}

/// Appends the changes of the log to those of the snapshot.
fn log(keys: &Keys<Body>, mut all: Vec<Change>) -> Option<Vec<Change>> {
    let mut last = chain(&all).last().copied().unwrap_or(0);
    while let Some(logged) = keys.log.get(&(all.len() as u64 + 1)) {
        let Body::Rows(change) = &logged.body else { return None };
        last = change.chained(last);
        if logged.checksum != last {
            return None;
        }
        all.push(*change);
    }
    Some(all)
}

/// Fills the bodies into a call.
fn filled(call: ScriptCall<()>, machine: Option<&Machine>) -> Option<ScriptCall<Body>> {
    Some(match call {
        ScriptCall::Acquire(acquisition) => ScriptCall::Acquire(acquisition),
        ScriptCall::Turn(turn) => ScriptCall::Turn(turn),
        ScriptCall::Give(give) => ScriptCall::Give(give),
        ScriptCall::Append(Append { by, tip, body, moment, ttl, note, beats }) => {
            let body = match body {
                Some(()) => Some(Body::Rows(*machine?.changes.get(tip.number as usize - 1)?)),
                None => None,
            };
            ScriptCall::Append(Append { by, tip, body, moment, ttl, note, beats })
        }
        ScriptCall::Piece(_) => return None,
    })
}

impl World {
    /// Feeds an input to a server's owner, and runs its actions. `stamp`: see [`Message::Reply`].
    pub(super) fn feed(&mut self, at: usize, input: Input, stamp: usize) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let now = self.at();
            let actions = self.servers[at].leader.take(input, now);
            for action in actions {
                inputs.extend(self.act(at, action, stamp));
            }
        }
    }

    fn act(&mut self, at: usize, action: Action, stamp: usize) -> Option<Input> {
        let (clock, time) = (self.lease_clock(), self.time());
        let (id, is_far, tick) = (self.servers[at].id, self.servers[at].is_far, self.tick);
        match action {
            Action::Look => {
                let is_heard = |own: &Own| {
                    let is_leader = |server: &Server| server.is_alive && server.id == own.leader;
                    self.servers.iter().any(|server| is_leader(server) && !server.is_cut)
                };
                let cut = self.keys_of(is_far).own.as_ref().is_some_and(|own| !is_heard(own));
                let keys = self.keys(is_far);
                let mut own = keys.own.clone().map(Box::new);
                // Any server may take the store at any time: R7 is for calm.
                if let Some(own) = own.as_mut().filter(|_| cut) {
                    own.beat = Moment::ZERO;
                }
                return Some(Input::Looked { store: keys.store, own, run: keys.run, time });
            }
            Action::NameStore(store, ttl) => self.keys(is_far).name_store(store, ttl),
            Action::AskServer(from) => {
                let word = self.ask(from);
                // R11: the rebuild goes on without asking this server, so the loss of its own knowledge is admitted.
                let heals = self.servers[at].machine.is_some();
                if heals && !matches!(word, ServerWord::Says { .. }) {
                    for server in self.servers.iter_mut().filter(|server| server.id == from) {
                        (server.counts, server.is_given_up) = (false, true);
                    }
                    // An earlier answer of this server may go out after those of the other one.
                    self.judge.admit_all_time();
                }
                return Some(Input::Heard { from, word });
            }
            Action::Call { number, call } => {
                let machine = self.servers[at].machine.as_ref();
                if let (ScriptCall::Give(give), Some(machine)) = (&call, machine) {
                    self.handed = Some((give.tip, machine.ends));
                }
                let call = filled(call, self.servers[at].machine.as_ref())?;
                self.servers[at].awaits.push((number, tick, None));
                self.net.push(Message::Call { from: id, is_far, number, call });
            }
            Action::Load(own) => {
                self.servers[at].load = Some(Loading { own, read: None, is_through: false });
            }
            Action::Serve => {
                let read = self.servers[at].load.take()?.read?;
                let mut machine = Machine::restored(read, clock + TTL);
                if forgets(Mutant::LoadsEndLeases) {
                    machine.ends = clock;
                }
                if let (true, Some((tip, ends))) = (forgets(Mutant::EndsAreHandedOver), self.handed)
                    && tip == machine.tip()
                {
                    machine.ends = ends;
                }
                self.servers[at].machine = Some(machine);
                self.servers[at].is_given_up = false;
                let own = self.keys(is_far).own.as_ref();
                let is_leader = own.is_some_and(|own| own.leader == id);
                self.servers[at].counts = is_leader;
            }
            Action::WriteSnapshot { by, generation } => {
                let all = self.servers[at].machine.as_ref()?.changes.clone();
                let body = Some(Body::Everything(all));
                self.send_piece(
                    at,
                    ScriptCall::Piece(PieceCall { by, generation, index: 0, body }),
                );
            }
            Action::UnlinkSnapshot { by, snapshot } => {
                let generation = snapshot.generation;
                let call = ScriptCall::Piece(PieceCall { by, generation, index: 0, body: None });
                self.net.push(Message::Call { from: id, is_far, number: PIECE_CALL, call });
            }
            Action::Release { up_to } => self.release(at, up_to, stamp),
            drops @ (Action::DropAll | Action::Reload) => {
                // It handed the store over, and the next leader reads all of it from Redis.
                let is_given = self.gave == Some(id)
                    || self.primary.own.as_ref().is_some_and(|own| own.leader != id);
                let server = &mut self.servers[at];
                let machine = server.machine.take();
                // A reload reads a state that was written whole a moment ago. Until it is read, Redis alone has it, as
                // after a death of the leader.
                let is_read_again = drops == Action::Reload;
                let is_early =
                    server.counts && !is_read_again && !is_given && !server.leader.has_ended();
                self.dropped.extend(machine.filter(|_| is_early).map(|machine| machine.chain));
                self.servers[at].counts = false;
                self.servers[at].load = None;
            }
            Action::Undo { number } => {
                let machine = self.servers[at].machine.as_mut()?;
                machine.pending.retain(|pending| pending.tip.number < number);
                let mut undone = Machine::restored(machine.changes.clone(), machine.ends);
                undone.changes.truncate(number as usize - 1);
                let mut undone = Machine::restored(undone.changes, machine.ends);
                undone.tickets = machine.tickets;
                undone.pending = std::mem::take(&mut machine.pending);
                *machine = undone;
            }
            Action::End => self.die(at),
            Action::RecoveryOver | Action::ClockLeapt(_) | Action::PassOn(_) | Action::Warn(_) => {}
        }
        None
    }

    pub(super) fn send_piece(&mut self, at: usize, call: ScriptCall<Body>) {
        let (from, is_far) = (self.servers[at].id, self.servers[at].is_far);
        let ScriptCall::Piece(PieceCall { generation, .. }) = &call else { return };
        let number = PIECE_CALL - generation.epoch.0 * 100 - generation.count;
        self.servers[at].awaits.push((number, self.tick, Some(call.clone())));
        self.net.push(Message::Call { from, is_far, number, call });
    }

    /// The reply of a server that is asked, or the failure to reach it.
    fn ask(&self, id: ServerId) -> ServerWord {
        match self.servers.iter().find(|server| server.is_alive && server.id == id) {
            Some(server) if server.is_cut || server.refuses => ServerWord::Refused,
            Some(server) if server.is_stopped => ServerWord::Silent,
            Some(server) => server.leader.word(self.at()),
            None => ServerWord::Refused,
        }
    }

    fn release(&mut self, at: usize, up_to: u64, stamp: usize) {
        let server = &mut self.servers[at];
        let (Some(machine), Some(epoch)) = (&mut server.machine, server.leader.epoch()) else {
            return;
        };
        let (out, stay) = std::mem::take(&mut machine.pending)
            .into_iter()
            .partition(|pending| pending.ticket <= up_to);
        machine.pending = stay;
        let out: Vec<super::work::Pending> = out;
        let stamp = stamp.min(self.judge.answers());
        for pending in out {
            let epoch = (!server.is_given_up).then_some(epoch);
            let found = self.judge.goes_out(&pending, &machine.chain, epoch, stamp);
            self.violation = self.violation.or(found);
            if let Some((client, asked, said)) = pending.to {
                self.clients[client].hears(said, asked);
            }
        }
    }

    /// A load reads the snapshot in one step and the log in another.
    pub(super) fn load_step(&mut self, at: usize) -> Option<()> {
        self.runs_at(at).then_some(())?;
        let is_far = self.servers[at].is_far;
        let mut load = self.servers[at].load.take_if(|load| !load.is_through)?;
        let keys = self.keys(is_far);
        let damaged = keys.own.as_ref() == Some(&*load.own);
        let (read, is_first) = match load.read.take() {
            None => (snapshot(keys, &load.own), true),
            Some(all) => (log(keys, all), false),
        };
        let Some(all) = read else {
            self.feed(at, Input::LoadFailed { damaged }, usize::MAX);
            return Some(());
        };
        let tip = last(&chain(&all));
        load.read = Some(all);
        load.is_through = !is_first;
        self.servers[at].load = Some(load);
        if !is_first {
            self.feed(at, Input::Loaded { tip }, usize::MAX);
        }
        Some(())
    }

    /// Checks all rules, and drops the answers that the law admits to be lost.
    pub(super) fn look(&mut self) {
        let now = self.tick;
        if self.clients.iter().all(|client| client.believes(now)) {
            self.violation = self.violation.or(Some(Violation::TwoHolders));
        }
        let there = history(&self.primary);
        if self.primary.own.is_some() && there.is_none() {
            self.violation = self.violation.or(Some(Violation::Damaged));
        }
        if self.forgot {
            let there = chain(&there.unwrap_or_default());
            let servers = &self.servers;
            let counting = || servers.iter().filter(|server| server.counts);
            self.judge.admit(|tip| {
                has(&there, tip)
                    || self.dropped.iter().any(|chain| has(chain, tip))
                    || counting().any(|s| s.machine.as_ref().is_some_and(|m| m.has(tip)))
            });
            let noted = self.primary.own.as_ref().map_or(Moment::ZERO, |own| own.moment);
            let at = self.at();
            let known =
                counting().filter_map(|server| server.leader.moment(at)).fold(noted, Ord::max);
            self.judge.admit_time(known.us());
        }
    }

    /// One tick in which these servers, the network and the store finish all open work.
    pub(super) fn calm_step(&mut self, servers: &[usize]) {
        self.tick += 1;
        self.end_beliefs();
        for at in servers {
            if self.runs_at(*at) {
                self.follow(*at);
                self.feed(*at, Input::Time, usize::MAX);
            }
        }
        for _ in 0..200 {
            let delivered = !self.net.is_empty() && self.step(Event::Deliver(0));
            let loaded = servers.iter().any(|at| self.step(Event::LoadStep(*at)));
            if !delivered && !loaded {
                break;
            }
        }
        for at in servers {
            while self.step(Event::Unsure(*at)) {}
        }
    }

    /// Ends all faults: now some server must serve, and answer.
    pub(super) fn calm_down(&mut self) {
        self.left = super::world::Faults::default();
        self.step(Event::Rejoin);
        for at in 0..self.servers.len() {
            self.step(Event::Wake(at));
            self.step(Event::Join(at));
            if !self.servers[at].is_alive {
                self.start(at);
            }
        }
        self.all_know_all();
        let all: Vec<usize> = (0..self.servers.len()).collect();
        for _ in 0..40 {
            self.calm_step(&all);
        }
        let before = self.judge.answers();
        for at in &all {
            self.step(Event::Push(*at));
        }
        for _ in 0..5 {
            self.calm_step(&all);
        }
        if self.judge.answers() == before {
            self.violation = self.violation.or(Some(Violation::NobodyServes));
        }
    }
}
