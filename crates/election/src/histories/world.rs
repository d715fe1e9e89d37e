//! The world of the histories: servers, a store that may fail, a network and clients, and the events that change them.

use tenure_core::time::{Moment, Span};

use super::judge::{Judge, Violation};
use super::work::{Body, Change, Client, Machine, Pending, Said, TTL, chain, last};
use crate::election::{Election, Input};
use crate::ids::{Epoch, Generation, RunId, ServerId, StoreId, Tip};
use crate::mutant::{Mutant, forgets};
use crate::scripts::{Keys, Own, ScriptCall, ScriptReply};

/// The store's clock at tick 0, in seconds: far enough from 0 for steps back.
const EPOCH_S: u64 = 1_000;

/// Entries that a machine may decide ahead of the last one that was sent.
const QUEUED_MAX: u64 = 2;

/// The number of times that each fault may happen in a history.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub(super) struct Faults {
    /// A server stops, and goes on later.
    pub(super) stops: u8,
    /// A server dies. Another process starts in its place when it is started.
    pub(super) deaths: u8,
    /// A server is unreachable for others for a while: it refuses connections, but lives.
    pub(super) cuts: u8,
    /// A message is lost.
    pub(super) losses: u8,
    /// A call is executed and arrives again, at any later time.
    pub(super) doubles: u8,
    /// The replica is promoted, without the writes that it still lacks.
    pub(super) failovers: u8,
    /// The store returns to the replica's state in the same run: a promotion there and back, or a machine set back to a
    /// snapshot.
    pub(super) set_backs: u8,
    /// Everything in the store is deleted.
    pub(super) flushes: u8,
    /// The replica is promoted, while some servers still reach the old primary.
    pub(super) splits: u8,
    /// The store's clock steps by some seconds.
    pub(super) steps: u8,
    /// Clean ends: the store is handed to another server.
    pub(super) ends: u8,
    /// Snapshots, without those of rebuilds.
    pub(super) turns: u8,
}

/// The start of a world.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub(super) servers: usize,
    pub(super) faults: Faults,
    /// True if each append waits for the replica.
    pub(super) waits: bool,
    /// True if the lock is held at the start.
    pub(super) held: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Server {
    pub(super) leader: Election,
    pub(super) id: ServerId,
    pub(super) is_alive: bool,
    pub(super) is_stopped: bool,
    /// It refuses the connections of other servers.
    pub(super) is_cut: bool,
    /// The same, but other servers still see its heartbeat.
    pub(super) refuses: bool,
    /// It reaches the old primary.
    pub(super) is_far: bool,
    /// The last entry of its rows while another server led the store.
    pub(super) applied: u64,
    pub(super) machine: Option<Machine>,
    /// True if answers stand by this machine: no other server has taken over.
    pub(super) counts: bool,
    /// Another server rebuilt the store although this one could not be asked.
    pub(super) is_given_up: bool,
    /// The load in progress.
    pub(super) load: Option<Loading>,
    /// Calls without a reply yet: the number, the time, and the piece to send again.
    pub(super) awaits: Vec<(u64, u64, Option<ScriptCall<Body>>)>,
}

/// A load on its way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Loading {
    pub(super) own: Box<Own>,
    /// The snapshot once it was read, and then everything.
    pub(super) read: Option<Vec<Change>>,
    pub(super) is_through: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Message {
    Call {
        from: ServerId,
        is_far: bool,
        number: u64,
        call: ScriptCall<Body>,
    },
    Reply {
        to: ServerId,
        number: u64,
        reply: Option<ScriptReply>,
        time: Option<Moment>,
        /// The number of answers that had gone out when the call was executed.
        stamp: usize,
        /// The piece of this snapshot was written, up to this entry.
        piece: Option<(Generation, Tip)>,
    },
}

/// One step of a history. Numbers are indexes into lists; an index out of range makes no step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    Tick,
    Deliver(usize),
    Unsure(usize),
    LoadStep(usize),
    Push(usize),
    Handle { server: usize, client: usize },
    Asks(usize),
    GivesUp(usize),
    Beats(usize),
    Replicate,
    Stop(usize),
    Wake(usize),
    Kill(usize),
    Start(usize),
    Cut(usize),
    Join(usize),
    Lose(usize),
    Double(usize),
    Failover,
    SetBack,
    Flush,
    Split(usize),
    Rejoin,
    Step(i64),
    End(usize),
    SnapshotDue(usize),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct World {
    pub(super) tick: u64,
    pub(super) offset: i64,
    pub(super) primary: Keys<Body>,
    replica: Keys<Body>,
    pub(super) old_primary: Option<Keys<Body>>,
    pub(super) servers: Vec<Server>,
    pub(super) clients: [Client; 2],
    pub(super) net: Vec<Message>,
    pub(super) left: Faults,
    waits: bool,
    pub(super) judge: Judge,
    serial: u64,
    /// Calls that the store has executed, each a microsecond after the one before. Unless its clock steps, no two
    /// acquisitions share an epoch.
    executed: u64,
    processes: u128,
    runs: u128,
    pub(super) forgot: bool,
    /// The server that handed the store over, until another one acquires it. Entries that its successor has not read
    /// are lost with the store, as after a death of the leader.
    pub(super) gave: Option<ServerId>,
    /// States that leaders dropped although no other server had taken over: no loss of these is admitted.
    pub(super) dropped: Vec<Vec<u64>>,
    /// Ends of leases that were handed over, if a rule is left out.
    pub(super) handed: Option<(Tip, u64)>,
    pub(super) violation: Option<Violation>,
    /// True after an event that the law admits to end all promises: checks stop.
    pub(super) is_admitted: bool,
}

impl World {
    /// A store that was made long ago, by a server that is gone.
    pub(super) fn new(setting: Setting) -> Self {
        let mut primary = Keys::empty(RunId(1));
        let own = Own {
            store: StoreId(1),
            epoch: Epoch(1),
            leader: ServerId(99),
            tip: Tip::default(),
            moment: Moment::ZERO,
            beat: Moment::ZERO,
            noted_run: RunId(1),
            snapshot: None,
            before: None,
            largest_ttl: Span::from_s(TTL),
        };
        primary.store = Some(own.store);
        primary.own = Some(own);
        let mut world = World {
            tick: 0,
            offset: 0,
            replica: primary.clone(),
            primary,
            old_primary: None,
            servers: Vec::new(),
            clients: [Client::Idle; 2],
            net: Vec::new(),
            left: setting.faults,
            waits: setting.waits,
            judge: Judge::default(),
            serial: 0,
            executed: 0,
            processes: 0,
            runs: 1,
            forgot: false,
            gave: None,
            dropped: Vec::new(),
            handed: None,
            violation: None,
            is_admitted: false,
        };
        for _ in 0..setting.servers {
            let server = world.process();
            world.servers.push(server);
        }
        world.all_know_all();
        // The first server acquires the store without any fault.
        while !world.servers[0].leader.serves() {
            world.calm_step(&[0]);
        }
        world.step(Event::Replicate);
        if setting.held {
            world.step(Event::Asks(0));
            world.step(Event::Handle { server: 0, client: 0 });
            while world.step(Event::Deliver(0)) {}
        }
        for at in 1..world.servers.len() {
            world.feed(at, Input::Time, usize::MAX);
        }
        world
    }

    fn process(&mut self) -> Server {
        self.processes += 1;
        let id = ServerId(self.processes);
        Server {
            leader: Election::new(id, StoreId(100 + self.processes)),
            id,
            is_alive: true,
            is_stopped: false,
            is_cut: false,
            refuses: false,
            is_far: false,
            applied: 0,
            machine: None,
            counts: false,
            is_given_up: false,
            load: None,
            awaits: Vec::new(),
        }
    }

    /// Makes every server know all processes.
    pub(super) fn all_know_all(&mut self) {
        for at in 0..self.servers.len() {
            let me = self.servers[at].id;
            let all = (1..=self.processes).map(ServerId).filter(|id| *id != me).collect();
            self.servers[at].leader.take(Input::Others(all), Span::ZERO);
        }
    }

    pub(super) fn time(&self) -> Moment {
        Moment::from_us((EPOCH_S as i64 + self.tick as i64 + self.offset) as u64 * 1_000_000)
    }

    pub(super) fn at(&self) -> Span {
        Span::from_s(self.tick)
    }

    pub(super) fn keys(&mut self, is_far: bool) -> &mut Keys<Body> {
        match (is_far, &mut self.old_primary) {
            (true, Some(old)) => old,
            _ => &mut self.primary,
        }
    }

    pub(super) fn keys_of(&self, is_far: bool) -> &Keys<Body> {
        match (is_far, &self.old_primary) {
            (true, Some(old)) => old,
            _ => &self.primary,
        }
    }

    pub(super) fn runs_at(&self, at: usize) -> bool {
        self.servers.get(at).is_some_and(|server| server.is_alive && !server.is_stopped)
    }

    /// Takes this step, if it is possible now.
    pub(super) fn step(&mut self, event: Event) -> bool {
        let left = self.left;
        let took = self.try_step(event).is_some();
        if took {
            self.look();
        } else {
            self.left = left;
        }
        took
    }

    fn try_step(&mut self, event: Event) -> Option<()> {
        fn spend(left: &mut u8) -> Option<()> {
            *left = left.checked_sub(1)?;
            Some(())
        }
        match event {
            Event::Tick => {
                self.tick += 1;
                for at in 0..self.servers.len() {
                    if self.runs_at(at) {
                        self.follow(at);
                        self.feed(at, Input::Time, usize::MAX);
                    }
                }
                self.end_beliefs();
            }
            Event::Deliver(place) => self.deliver(place)?,
            Event::Unsure(at) => {
                let tick = self.tick;
                let server = self.servers.get_mut(at).filter(|s| s.is_alive && !s.is_stopped)?;
                let place = server.awaits.iter().position(|(_, since, _)| *since < tick)?;
                match server.awaits.remove(place) {
                    (call, _, None) => self.feed(at, Input::Unsure { call }, usize::MAX),
                    (_, _, Some(piece)) => self.send_piece(at, piece),
                }
            }
            Event::LoadStep(at) => self.load_step(at)?,
            Event::Push(at) => {
                self.may_decide(at)?;
                self.serial += 1;
                self.decide(at, Change::Push { serial: self.serial }, None);
            }
            Event::Handle { server, client } => self.handle(server, client)?,
            Event::Asks(client) => match &mut self.clients[client] {
                idle @ Client::Idle => *idle = Client::Asks(self.tick),
                _ => return None,
            },
            Event::GivesUp(client) => match &mut self.clients[client] {
                asks @ Client::Asks(_) => *asks = Client::Idle,
                _ => return None,
            },
            Event::Beats(client) => match &mut self.clients[client] {
                Client::Holds { asked, .. } if asked.is_none_or(|at| at < self.tick) => {
                    *asked = Some(self.tick);
                }
                _ => return None,
            },
            Event::Replicate if self.replica != self.primary => {
                self.replica = self.primary.clone();
            }
            Event::Stop(at) => {
                self.runs_at(at).then_some(())?;
                spend(&mut self.left.stops)?;
                self.servers[at].is_stopped = true;
            }
            Event::Wake(at) => {
                let server = self.servers.get_mut(at).filter(|server| server.is_stopped)?;
                server.is_stopped = false;
            }
            Event::Kill(at) => {
                self.servers.get(at).filter(|server| server.is_alive)?;
                spend(&mut self.left.deaths)?;
                self.die(at);
            }
            Event::Start(at) => {
                self.servers.get(at).filter(|server| !server.is_alive)?;
                self.start(at);
            }
            Event::Cut(at) => {
                self.servers.get(at).filter(|server| server.is_alive && !server.is_cut)?;
                spend(&mut self.left.cuts)?;
                self.servers[at].is_cut = true;
            }
            Event::Join(at) => {
                let server = self.servers.get_mut(at).filter(|server| server.is_cut)?;
                server.is_cut = false;
            }
            Event::Lose(place) => {
                self.net.get(place)?;
                spend(&mut self.left.losses)?;
                self.net.remove(place);
            }
            Event::Double(place) => {
                let Message::Call { .. } = self.net.get(place)? else { return None };
                spend(&mut self.left.doubles)?;
                self.net.push(self.net[place].clone());
            }
            Event::Failover => {
                spend(&mut self.left.failovers)?;
                (self.old_primary.is_none()).then_some(())?;
                self.promote();
            }
            Event::SetBack => {
                spend(&mut self.left.set_backs)?;
                self.old_primary.is_none().then_some(())?;
                self.forgot |= self.primary != self.replica;
                self.replica.run = self.primary.run;
                self.primary = self.replica.clone();
            }
            Event::Flush => {
                spend(&mut self.left.flushes)?;
                self.forgot = true;
                self.primary = Keys::empty(self.primary.run);
                self.replica = self.primary.clone();
            }
            Event::Split(at) => {
                self.servers.get(at)?;
                spend(&mut self.left.splits)?;
                self.old_primary.is_none().then_some(())?;
                self.old_primary = Some(self.primary.clone());
                self.promote();
                self.servers[at].is_far = true;
            }
            Event::Rejoin => {
                self.old_primary.take()?;
                for server in &mut self.servers {
                    server.is_far = false;
                }
                self.net.retain(|m| !matches!(m, Message::Call { is_far: true, .. }));
            }
            Event::Step(by) => {
                spend(&mut self.left.steps)?;
                self.offset += by;
            }
            Event::End(at) => {
                self.runs_at(at).then_some(())?;
                self.servers[at].leader.serves().then_some(())?;
                spend(&mut self.left.ends)?;
                let others = self.servers.iter().enumerate();
                let to = others
                    .filter(|(other, server)| *other != at && server.is_alive)
                    .map(|(_, server)| server.id)
                    .next();
                self.feed(at, Input::End { to }, usize::MAX);
            }
            Event::SnapshotDue(at) => {
                self.runs_at(at).then_some(())?;
                self.servers[at].leader.serves().then_some(())?;
                spend(&mut self.left.turns)?;
                self.feed(at, Input::SnapshotDue, usize::MAX);
            }
            Event::Replicate => return None,
        }
        Some(())
    }

    pub(super) fn end_beliefs(&mut self) {
        for client in &mut self.clients {
            if matches!(client, Client::Holds { until, .. } if *until <= self.tick) {
                *client = Client::Idle;
            }
        }
    }

    /// A follower reads the entries that it lacks, and learns the positions of the others.
    pub(super) fn follow(&mut self, at: usize) {
        let number =
            self.keys_of(self.servers[at].is_far).own.as_ref().map_or(0, |own| own.tip.number);
        let server = &mut self.servers[at];
        server.applied = server.applied.max(number);
        let known =
            self.servers.iter().filter(|server| server.is_alive).map(|server| server.applied);
        let known = known.max().unwrap_or(0);
        self.servers[at].leader.take(Input::Known(known), Span::ZERO);
    }

    fn promote(&mut self) {
        self.forgot |= self.primary != self.replica;
        self.runs += 1;
        self.replica.run = RunId(self.runs);
        self.primary = self.replica.clone();
    }

    pub(super) fn die(&mut self, at: usize) {
        let server = &mut self.servers[at];
        server.is_alive = false;
        server.is_stopped = false;
        server.machine = None;
        server.counts = false;
        server.load = None;
        server.awaits.clear();
    }

    pub(super) fn start(&mut self, at: usize) {
        let mut server = self.process();
        server.is_far = self.servers[at].is_far;
        self.servers[at] = server;
        self.all_know_all();
    }

    fn may_decide(&self, at: usize) -> Option<()> {
        let server = &self.servers.get(at)?;
        let entries = server.machine.as_ref()?.tip().number;
        let sent = server.leader.sent()?.number;
        (self.runs_at(at) && server.leader.decides() && entries < sent + QUEUED_MAX).then_some(())
    }

    /// The clock by which leases end.
    pub(super) fn lease_clock(&self) -> u64 {
        if forgets(Mutant::LeasesEndByTime) { self.time().us() / 1_000_000 } else { self.tick }
    }

    fn decide(&mut self, at: usize, change: Change, to: Option<(usize, u64, Said)>) {
        let now = self.at();
        let server = &mut self.servers[at];
        let moment = server.leader.moment(now).map_or(0, Moment::us);
        let Some(machine) = &mut server.machine else { return };
        let grants = matches!(change, Change::Grant { .. });
        machine.apply(change);
        machine.tickets += 1;
        let (tip, ticket) = (machine.tip(), machine.tickets);
        machine.pending.push(Pending { ticket, tip, moment, to });
        let decided =
            Input::Decided { checksum: tip.checksum, ticket, ttl: Span::from_s(TTL), grants };
        self.feed(at, decided, usize::MAX);
    }

    /// A client's call reaches a server that serves, or that still decides while it asks the others after a loss.
    fn handle(&mut self, at: usize, client: usize) -> Option<()> {
        self.runs_at(at).then_some(())?;
        self.servers[at].leader.decides().then_some(())?;
        let (clock, now) = (self.lease_clock(), self.at());
        match self.clients[client] {
            Client::Idle | Client::Holds { asked: None, .. } => None,
            Client::Asks(asked) => {
                self.may_decide(at)?;
                let server = &mut self.servers[at];
                let recovers = server.leader.recovers();
                let machine = server.machine.as_mut()?;
                (!recovers && (machine.holder.is_none() || machine.ends <= clock)).then_some(())?;
                machine.holder = Some(client);
                machine.ends = clock + TTL;
                self.serial += 1;
                let change = Change::Grant { client, serial: self.serial };
                self.decide(at, change, Some((client, asked, Said::Granted)));
                Some(())
            }
            Client::Holds { asked: Some(asked), .. } => {
                let server = &mut self.servers[at];
                let moment = server.leader.moment(now).map_or(0, Moment::us);
                let machine = server.machine.as_mut()?;
                let is_there = |pending: &Pending| {
                    pending.to.is_some_and(|(to, at, _)| to == client && at == asked)
                };
                (!machine.pending.iter().any(is_there)).then_some(())?;
                let said = if machine.holder == Some(client) { Said::Extended } else { Said::Lost };
                if said == Said::Extended {
                    machine.ends = clock + TTL;
                }
                machine.tickets += 1;
                let (ticket, tip) = (machine.tickets, machine.tip());
                let to = Some((client, asked, said));
                machine.pending.push(Pending { ticket, tip, moment, to });
                self.feed(at, Input::AnswerWaits { ticket }, usize::MAX);
                Some(())
            }
        }
    }

    fn deliver(&mut self, place: usize) -> Option<()> {
        match self.net.get(place)?.clone() {
            Message::Call { from, is_far, number, call } => {
                self.net.remove(place);
                self.executed += 1;
                let time = self.time().plus(Span::from_us(self.executed));
                let is_split = is_far && self.old_primary.is_some();
                let reply = self.keys(is_far).call(&call, time);
                let from_at = self.servers.iter().position(|s| s.is_alive && s.id == from);
                if let (ScriptCall::Give(_), ScriptReply::Done) = (&call, &reply) {
                    self.gave = Some(from);
                }
                if let (ScriptCall::Acquire(wish), ScriptReply::Acquired(..)) = (&call, &reply) {
                    self.gave = None;
                    // Everything was lost while no server that knew the store was running.
                    let knows = |server: &Server| {
                        let runs = server.is_alive && !server.is_stopped && server.id != from;
                        runs && server.leader.store().is_some_and(|store| store != wish.store)
                    };
                    self.is_admitted |= wish.is_new && !self.servers.iter().any(knows);
                    let heals = from_at.is_some_and(|at| self.servers[at].machine.is_some());
                    if let (true, Some(at)) = (heals, from_at) {
                        self.servers[at].counts = true;
                    } else {
                        for server in &mut self.servers {
                            server.counts &= server.id == from;
                        }
                    }
                }
                let waits = self.waits && !forgets(Mutant::NobodyWaits);
                let is_append = !matches!(call, ScriptCall::Acquire(_));
                if waits && is_append && !is_split {
                    self.replica = self.primary.clone();
                }
                // Too few replicas confirmed it: the caller gets an unknown outcome.
                let reply = (!(waits && is_append && is_split)).then_some(reply);
                let stamp = self.judge.answers();
                let piece = match &call {
                    ScriptCall::Piece(piece) => match &piece.body {
                        Some(Body::Everything(all)) => Some((piece.generation, last(&chain(all)))),
                        _ => None,
                    },
                    _ => None,
                };
                let is_unlinked = matches!(&call, ScriptCall::Piece(piece) if piece.body.is_none());
                if from_at.is_some() && !is_unlinked {
                    let to = from;
                    let time = call.tells_time().then_some(time);
                    self.net.push(Message::Reply { to, number, reply, time, stamp, piece });
                }
            }
            Message::Reply { to, number, reply, time, stamp, piece } => {
                let at = self.servers.iter().position(|s| s.is_alive && s.id == to);
                let Some(at) = at else {
                    self.net.remove(place);
                    return Some(());
                };
                self.runs_at(at).then_some(())?;
                self.net.remove(place);
                let awaits = &mut self.servers[at].awaits;
                if awaits.iter().any(|(call, ..)| *call == number) && reply.is_some() {
                    awaits.retain(|(call, ..)| *call != number);
                }
                let input = match (piece, reply) {
                    (_, None) => return Some(()),
                    (Some((generation, tip)), Some(ScriptReply::Done)) => {
                        Input::SnapshotWritten { generation, pieces: 1, tip }
                    }
                    (Some((generation, _)), Some(reply)) => {
                        Input::SnapshotFailed { generation, reply }
                    }
                    (None, Some(reply)) => Input::Replied { call: number, reply, time },
                };
                self.feed(at, input, stamp);
            }
        }
        Some(())
    }
}
