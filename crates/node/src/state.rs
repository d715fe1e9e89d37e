//! The state of a server, behind one lock: the election, the calls that wait for it, and its pending effects.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use tenure_core::secret::Secret;
use tenure_core::time::Span;
use tenure_election::Election;
use tenure_election::election::{Action, Input, ServerWord, Warning};
use tenure_election::ids::{Epoch, Generation, ServerId, StoreId};
use tenure_election::scripts::{ScriptCall, SnapshotName, Term};
use tenure_engine::Embedded;
use tenure_engine_api::{LeaderAddress, SharedServer};
use tenure_journal::Hears;
use tenure_redis::{ReplicaShortage, ServerEntry, StoreCall};

use crate::appends::Appends;
use crate::clock::StoreClock;
use crate::known_servers::{KnownServers, RELEASE};
use crate::options::AskedServer;
use crate::place::{FollowerHealth, NodeHealth, StoreLeader, leads, sentence};
use crate::translate::Dictionary;

/// A follower that lacks more entries than this is reported as behind: one second of many small calls.
const FAR_BEHIND: u64 = 20_000;

/// The start of the sentences on a leader.
const OWNS: &str = "this server owns the store";
/// The reason why an ending server serves no calls.
pub(crate) const ENDS: &str = "this server ends";

/// The reason why a partitioned leader serves no calls, with the known trouble.
fn cut_off(trouble: Option<&String>) -> String {
    let trouble = trouble.map(|why| format!(" ({why})")).unwrap_or_default();
    format!(
        "{OWNS}, and Redis has not answered it for 3 s{trouble}; it serves again when Redis does, unless \
         another server has taken the store by then: see whether this machine reaches Redis"
    )
}

/// R13: the reason why written changes are not answered; `who` names the server, and says what it has.
fn waits_for_replicas(who: &str, ReplicaShortage { have, wanted }: ReplicaShortage) -> String {
    format!(
        "{who}, and waits for its replicas: {have} of {wanted} replicas have what it wrote last; add a replica, see why one does \
         not follow, or ask for fewer: tenure store set --replicas {have}"
    )
}

pub(crate) struct NodeState {
    pub election: Election,
    /// Actions of the election that are not done yet, in their order.
    pub todo: VecDeque<Action>,
    /// A thread runs the pending actions.
    pub is_acting: bool,
    pub words: Dictionary,
    pub appends: Appends,
    /// Rises with each load and each drop: reports of an engine of an earlier term do not count.
    pub term: u64,
    /// The engine is being opened, and its load is not proved yet.
    pub is_loading: bool,
    /// The empty append that proves the load.
    pub proof: Option<Hears>,
    pub engine: Option<Arc<Embedded>>,
    /// The epoch at which the engine was opened.
    pub served_from: Epoch,
    pub servers: KnownServers,
    pub secret: Secret,
    /// The secret is the one that all servers of the store have.
    pub is_registered: bool,
    /// A follower could not make the last snapshot, so this server makes the next one. Starts as `false`, and is reset
    /// once it has made one.
    pub writes_itself: bool,
    /// Snapshots that were given up while a follower wrote them, and the number of their chunks then: it may write
    /// another.
    pub given_up: VecDeque<(Generation, u32)>,
    /// The last seen leader, and its epoch; 0 until the next look at a store that was handed over to that leader.
    pub seen: Option<(ServerId, Epoch)>,
    pub warnings: Vec<Warning>,
    /// The start of a recovery was logged, and not its end. Starts as `false`.
    pub is_recovering: bool,
    /// The reason why no server serves the store.
    pub why: String,
    /// The first trouble with Redis, or the way to it, since this leader is partitioned; `None` if it is not.
    pub trouble: Option<String>,
    /// Too few replicas have the last write of this server, or of an earlier process of it. `None` at the start, and
    /// once enough have it.
    pub shortage: Option<ReplicaShortage>,
    /// R15: Redis would drop keys when it is full, by its last answer to this leader; a sentence that says what to do.
    /// Starts as `None`, and is `None` where another server leads the store.
    pub evicts: Option<String>,
    /// The reason why a copy paused the store, if it did at the last look. Starts as `None`.
    pub paused: Option<String>,
    /// The reason why this release cannot read the store, which another one wrote. Starts as `None`.
    pub unreadable: Option<String>,
    /// The store that is kept from the election for that reason. Starts as `None`.
    pub named: Option<StoreId>,
    /// Why this server cannot open what is sealed: it lacks the key.
    pub sealed: Option<String>,
    /// The acquisition that is held back while `paused` or `unreadable` is set.
    pub held_back: Option<u64>,
    /// Servers that did not answer the last question.
    pub unreached: BTreeSet<ServerId>,
    /// Followers that are far behind.
    pub laggards: BTreeSet<String>,
    /// It was asked to end.
    pub is_closing: bool,
    /// It has ended: no input is taken any more.
    pub is_over: bool,
}

/// An effect, which is run without the lock.
pub(crate) enum Effect {
    Call { number: u64, call: StoreCall },
    Done(Vec<Hears>),
    Prove(Option<Hears>),
    Drop { engine: Option<Arc<Embedded>>, waiting: Vec<Hears> },
    Look,
    Name(StoreId, Span),
    Ask { id: ServerId, server: AskedServer },
    Unknown(ServerId),
    Load { term: u64, recovers: Option<Span> },
    Recover(Arc<Embedded>, Span),
    Doubt(Arc<Embedded>),
    EndRecovery(Arc<Embedded>),
    Write { term: u64, by: Term, generation: Generation, has: Option<AskedServer> },
    Unlink { by: Term, snapshot: SnapshotName },
    Nothing,
}

impl NodeState {
    pub fn new(election: Election, secret: Secret) -> NodeState {
        NodeState {
            election,
            todo: VecDeque::new(),
            is_acting: false,
            words: Dictionary::default(),
            appends: Appends::default(),
            term: 0,
            is_loading: false,
            proof: None,
            engine: None,
            served_from: Epoch(0),
            servers: KnownServers::default(),
            secret,
            is_registered: false,
            writes_itself: false,
            given_up: VecDeque::new(),
            seen: None,
            warnings: Vec::new(),
            is_recovering: false,
            why: "this server has just started and looks for the others".to_owned(),
            trouble: None,
            shortage: None,
            evicts: None,
            paused: None,
            unreadable: None,
            named: None,
            sealed: None,
            held_back: None,
            unreached: BTreeSet::new(),
            laggards: BTreeSet::new(),
            is_closing: false,
            is_over: false,
        }
    }

    /// Gives the election an input.
    pub fn take(&mut self, input: Input, clock: &StoreClock) {
        if self.is_over {
            return;
        }
        let at = clock.at();
        self.todo.extend(self.election.take(input, at));
        if let Some(moment) = self.election.moment(at) {
            clock.is(moment, at);
        }
        if self.election.serves() {
            let recovers = self.election.recovers();
            self.warnings.retain(|warning| *warning == Warning::Recovering && recovers);
        }
    }

    fn warn(&mut self, warning: Warning) {
        if !self.warnings.contains(&warning) {
            tracing::warn!("{}", sentence(warning));
            self.warnings.push(warning);
        }
    }

    /// Logs when Redis begins to drop keys if it is full, and when it stops.
    pub fn tell_of_eviction(&mut self, evicts: Option<String>) {
        match &evicts {
            Some(why) if evicts != self.evicts => tracing::warn!("{why}"),
            None if self.evicts.is_some() && self.election.serves() => {
                tracing::info!("this Redis drops no keys any more when it is full");
            }
            _ => {}
        }
        self.evicts = evicts;
    }

    /// Logs when another server stops answering questions, and when it answers again.
    pub fn reached(&mut self, id: ServerId, url: &str, word: &ServerWord) {
        let is_reached = matches!(word, ServerWord::Says { .. });
        if is_reached && self.unreached.remove(&id) {
            tracing::info!("{url} answers this server again");
        } else if !is_reached && self.unreached.insert(id) {
            let why = match word {
                ServerWord::Refused => "it has ended, or another program is there",
                _ => "it does not answer",
            };
            tracing::warn!("this server cannot reach {url}: {why}");
        }
    }

    /// Logs when a follower falls far behind, and when it has caught up.
    pub fn tell_of_laggards(&mut self) {
        let Some(sent) = self.election.sent() else { return self.laggards.clear() };
        let standbys = self.servers.standbys(sent.number);
        self.laggards.retain(|url| standbys.iter().any(|standby| standby.url == *url));
        for FollowerHealth { url, behind } in standbys {
            if behind > FAR_BEHIND && self.laggards.insert(url.clone()) {
                tracing::warn!(
                    "{url} is {behind} entries behind: a takeover by it would have to read them first"
                );
            } else if behind <= FAR_BEHIND / 10 && self.laggards.remove(&url) {
                tracing::info!("{url} has caught up: it is {behind} entries behind");
            }
        }
    }

    /// Prepares the effect of an action.
    pub fn effect(&mut self, action: Action) -> Effect {
        match action {
            Action::Call { number, call: ScriptCall::Acquire(_) }
                if self.paused.is_some() || self.unreadable.is_some() =>
            {
                self.held_back = Some(number);
                Effect::Nothing
            }
            Action::Call { number, call } => {
                let NodeState { words, appends, .. } = self;
                match words.call(&call, |number| appends.entry(number)) {
                    Some(call) => Effect::Call { number, call },
                    None => Effect::Nothing,
                }
            }
            Action::Release { up_to } => Effect::Done(self.appends.release(up_to)),
            Action::Look => Effect::Look,
            Action::NameStore(store, ttl) => Effect::Name(store, ttl),
            Action::AskServer(id) => match self.asked(id) {
                Some(server) => Effect::Ask { id, server },
                None => Effect::Unknown(id),
            },
            Action::Load(_) => {
                self.term += 1;
                self.is_loading = true;
                // The earlier leader does not matter any more, even if this server has handed the store over to it.
                self.seen = None;
                self.why = "this server has taken the store, and reads it".to_owned();
                Effect::Load { term: self.term, recovers: self.election.recovery() }
            }
            Action::Serve => {
                self.is_loading = false;
                self.served_from = self.election.epoch().unwrap_or_default();
                Effect::Prove(self.proof.take())
            }
            Action::DropAll | Action::Reload => {
                let is_taken = action == Action::DropAll;
                self.is_recovering = false;
                self.term += 1;
                if !is_taken {
                    tracing::warn!(
                        "leases that were granted when the store forgot are not answered, since a server could not be asked; the store is read again"
                    );
                } else if self.engine.is_some() && !self.is_closing {
                    tracing::warn!(
                        "another server has taken the store from this one; calls that were on their way are answered as `outcome_unknown`"
                    );
                }
                self.is_loading = false;
                let why = if self.is_closing {
                    ENDS
                } else if is_taken {
                    "another server has taken the store, or it has none"
                } else {
                    "this server reads the store again after a loss"
                };
                self.why = why.to_owned();
                let mut waiting = self.appends.take_all();
                waiting.extend(self.proof.take());
                Effect::Drop { engine: self.engine.take(), waiting }
            }
            Action::WriteSnapshot { by, generation } => {
                let has = self.snapshot_writer(&by).and_then(|id| self.asked(id));
                Effect::Write { term: self.term, by, generation, has }
            }
            Action::UnlinkSnapshot { by, snapshot } => Effect::Unlink { by, snapshot },
            Action::PassOn(leader) => {
                if self.seen.is_none_or(|(seen, _)| seen != leader) {
                    self.seen = Some((leader, Epoch(0)));
                }
                Effect::Nothing
            }
            Action::Warn(warning) => {
                self.warn(warning);
                self.is_recovering |= warning == Warning::Recovering;
                // An engine that is being opened is notified after that.
                match (self.engine.clone(), warning, self.election.recovery()) {
                    (Some(engine), Warning::StoreForgot, _) => Effect::Doubt(engine),
                    (Some(engine), Warning::Recovering, Some(span)) => {
                        Effect::Recover(engine, span)
                    }
                    _ => Effect::Nothing,
                }
            }
            Action::RecoveryOver => {
                if std::mem::take(&mut self.is_recovering) {
                    tracing::info!("the recovery of the store is over");
                } else {
                    tracing::info!(
                        "the store lost nothing that this server does not know, and is whole again"
                    );
                }
                self.engine.clone().map_or(Effect::Nothing, Effect::EndRecovery)
            }
            Action::ClockLeapt(by) => {
                tracing::warn!("the clock of Redis leapt ahead by {} ms", by.us() / 1_000);
                Effect::Nothing
            }
            // Only a rule that a test leaves out undoes; and `close` itself sees the end.
            Action::Undo { .. } | Action::End => Effect::Nothing,
        }
    }

    /// A server that a question goes to.
    fn asked(&self, id: ServerId) -> Option<AskedServer> {
        let (url, secret) = (self.servers.url(id)?.to_owned(), self.secret.clone());
        let store = self.election.store().map(|store| store.0);
        Some(AskedServer { url, id: id.0, store, secret })
    }

    /// The follower that writes a snapshot for this leader; `None`: the leader writes it. A rebuild is always the
    /// leader's: only its rows are sure to have the changes that the store forgot.
    fn snapshot_writer(&self, by: &Term) -> Option<ServerId> {
        let is_usual = self.election.serves() && self.election.epoch() == Some(by.epoch);
        if is_usual && !self.writes_itself {
            self.servers.furthest_with_rows(RELEASE)
        } else {
            None
        }
    }

    /// The place where calls are answered, as far as this server knows.
    pub fn place(&self, at: Span) -> StoreLeader {
        let engine = self.engine.as_ref().filter(|_| {
            !self.is_closing
                && self.election.decides()
                && !self.warnings.contains(&Warning::OtherStore)
        });
        if let Some(engine) = engine {
            if self.election.is_cut_off(at) {
                return StoreLeader::None(match self.shortage {
                    Some(shortage) => waits_for_replicas(OWNS, shortage),
                    None => cut_off(self.trouble.as_ref()),
                });
            }
            return StoreLeader::Local { engine: engine.clone(), epoch: self.served_from.0 };
        }
        if let Some(paused) = &self.paused {
            return StoreLeader::Paused(paused.clone());
        }
        let leader = self.seen.filter(|_| self.election.epoch().is_none());
        if let Some((leader, epoch)) = leader {
            return match self.servers.url(leader) {
                Some(url) => {
                    StoreLeader::Remote(LeaderAddress { url: url.to_owned(), epoch: epoch.0 })
                }
                None => StoreLeader::None(
                    "the server that owns the store did not say where it can be reached".to_owned(),
                ),
            };
        }
        StoreLeader::None(match (self.warnings.last(), self.shortage) {
            (Some(warning), _) => sentence(*warning).to_owned(),
            (None, Some(shortage)) if self.is_loading => {
                waits_for_replicas("this server has taken the store", shortage)
            }
            (None, _) => self.why.clone(),
        })
    }

    pub fn health(&self, at: Span) -> NodeHealth {
        let place = self.place(at);
        // Also while the store is being taken or rebuilt: no leader is called partitioned then.
        let shortage = self.shortage.filter(|_| matches!(place, StoreLeader::Local { .. }));
        let shortage = shortage.map(|shortage| waits_for_replicas(OWNS, shortage));
        let leader = match place {
            StoreLeader::Local { epoch, .. } => {
                format!("{OWNS}, at epoch {epoch}")
            }
            StoreLeader::Remote(leader) => leads(&leader),
            StoreLeader::None(why) | StoreLeader::Paused(why) => why,
        };
        let warnings = self.warnings.iter().map(|warning| sentence(*warning).to_owned());
        let known = [&self.unreadable, &self.evicts, &self.sealed].into_iter().flatten().cloned();
        let unreached = self.election.unreached().and_then(|id| self.servers.url(id));
        let known = known.chain(unreached.map(|url| {
            format!(
                "{url} owns the store and lives, and this server cannot reach it: see its --advertise, and what lies between the two"
            )
        }));
        let warnings = shortage.into_iter().chain(known).chain(warnings);
        let standbys = self.election.sent().map(|sent| self.servers.standbys(sent.number));
        NodeHealth { leader, warnings: warnings.collect(), standbys: standbys.unwrap_or_default() }
    }

    /// This server (`me`, whose rows have the entries up to `applied`) and the others, with or without a leader.
    pub fn shared_servers(&self, me: &ServerEntry, applied: u64, at: Span) -> Vec<SharedServer> {
        let leader = match self.place(at) {
            StoreLeader::Local { .. } => Some(ServerId(me.id)),
            StoreLeader::Remote(_) => self.seen.map(|(leader, _)| leader),
            StoreLeader::None(_) | StoreLeader::Paused(_) => None,
        };
        let applied = self.election.sent().map_or(applied, |sent| sent.number);
        let me = ServerEntry { applied, ..me.clone() };
        let mut all = vec![&me];
        all.extend(self.servers.registered());
        // The leader registers the last entry that it sent.
        let end = all.iter().map(|entry| entry.applied).max().unwrap_or_default();
        let shared = |entry: &&ServerEntry| {
            let is_leader = leader == Some(ServerId(entry.id));
            SharedServer {
                url: entry.url.clone(),
                is_self: entry.id == me.id,
                is_leader,
                behind: if is_leader { 0 } else { end.saturating_sub(entry.applied) },
                unreachable: None,
            }
        };
        all.iter().map(shared).collect()
    }

    /// The answer of this server to another one.
    pub fn word(&self, at: Span) -> ServerWord {
        self.election.word(at)
    }
}
