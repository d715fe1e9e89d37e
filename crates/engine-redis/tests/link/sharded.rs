//! Messages in a cluster: each channel is heard at the node that owns its slot, wherever that goes.

use std::time::Duration;

use tenure_engine_redis::link::{Link, LinkOptions, Overheard, Subscription};
use tenure_testkit::redis::{Aof, RedisCluster, wanted};
use tokio::sync::mpsc::Receiver;
use tokio::time::Instant;

use crate::calls::{link, link_with, message, next, next_message, until, until_it_works};

/// Three nodes, and a process that listens to one channel at each of two of them.
struct Listened {
    cluster: RedisCluster,
    listening: Subscription,
    events: Receiver<Overheard>,
    /// The channel, and its slot.
    here: (String, u16),
    there: (String, u16),
}

fn gap(channel: &str) -> Overheard {
    Overheard::Gap { channel: Some(channel.to_owned()) }
}

/// How many listen to a channel at a node.
fn ears(cluster: &RedisCluster, node: usize, channel: &str) -> String {
    cluster.server(node).must(&["PUBSUB", "SHARDNUMSUB", channel]).list()[1].text()
}

impl Listened {
    async fn start(options: LinkOptions, aof: Aof) -> Option<Self> {
        if !wanted() {
            return None;
        }
        let cluster = RedisCluster::start_with(3, aof);
        let link = link_with(&cluster.url(), options);
        until_it_works(&link, "default").await;
        let (here, there) = Self::apart(&cluster, &link);
        let (listening, mut events) = link.listen();
        for (channel, _) in [&here, &there] {
            listening.subscribe(channel);
            assert_eq!(next(&mut events).await, gap(channel));
        }
        assert_eq!(listening.down(), None);
        Some(Listened { cluster, listening, events, here, there })
    }

    /// Two channels of two namespaces on two nodes.
    fn apart(cluster: &RedisCluster, link: &Link) -> ((String, u16), (String, u16)) {
        let named = |number: usize| {
            let channel = link.address().key(&format!("n-{number}"), "t:");
            let slot = cluster.slot_of(&channel);
            (channel, slot)
        };
        let here = named(0);
        let elsewhere = |(_, slot): &(String, u16)| cluster.owner(*slot) != cluster.owner(here.1);
        let there = (1..).map(named).find(elsewhere).expect("names lie in many slots");
        (here, there)
    }

    /// One that has neither channel.
    fn third(&self) -> usize {
        let owners = [self.here.1, self.there.1].map(|slot| self.cluster.owner(slot));
        (0..3).find(|node| !owners.contains(node)).expect("there are three")
    }

    /// Publishes where the slot is; one process hears it there, and it comes.
    async fn comes(&mut self, (channel, slot): &(String, u16), text: &str) {
        let owner = self.cluster.owner(*slot);
        assert_eq!(self.cluster.server(owner).must(&["SPUBLISH", channel, text]).text(), "1");
        assert_eq!(next_message(&mut self.events).await, message(channel, text));
    }

    async fn both_come(&mut self) {
        for at in [self.here.clone(), self.there.clone()] {
            self.comes(&at, "x").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_channel_is_heard_at_the_node_that_has_its_slot_and_at_no_other() {
    let Some(mut all) = Listened::start(LinkOptions::default(), Aof::Off).await else { return };
    all.both_come().await;
    for (channel, slot) in [&all.here, &all.there] {
        for node in 0..3 {
            let there = if all.cluster.owner(*slot) == node { "1" } else { "0" };
            assert_eq!(ears(&all.cluster, node, channel), there);
        }
    }
    let listeners = |node: usize| {
        let list = all.cluster.server(node).must(&["CLIENT", "LIST", "TYPE", "pubsub"]).text();
        list.lines().count()
    };
    assert_eq!(listeners(all.third()), 0, "nothing is wanted from there");
    let owner = all.cluster.owner(all.here.1);
    all.listening.unsubscribe(&all.here.0);
    until("nobody listens there", || listeners(owner) == 0).await;
    assert!(!all.listening.hears(&all.here.0) && all.listening.hears(&all.there.0));
    assert_eq!(all.listening.down(), None, "all is heard that is wanted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_moves_takes_its_listeners_along() {
    // Nobody looks at the map in time: the nodes themselves tell where the slot is.
    let slow = LinkOptions { look_every: Duration::from_secs(600), ..LinkOptions::default() };
    let Some(mut all) = Listened::start(slow, Aof::Off).await else { return };
    let slot = all.here.1;
    // To a node that is listened to already, to one that is not, and back.
    let round = [all.cluster.owner(all.there.1), all.third(), all.cluster.owner(slot)];
    let mut best = Duration::MAX;
    for (moves, to) in round.into_iter().cycle().take(6).enumerate() {
        all.cluster.move_slot(slot, all.cluster.owner(slot), to);
        let begin = Instant::now();
        assert_eq!(next(&mut all.events).await, gap(&all.here.0), "and of no other");
        if moves > 0 {
            best = best.min(begin.elapsed());
        }
        assert!(all.listening.hears(&all.here.0));
        all.both_come().await;
    }
    // Sooner than there is a second look at the map: the node says where its slot went.
    assert!(best < Duration::from_millis(100), "{best:?}");
    assert_eq!(all.listening.down(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_that_is_asked_for_at_the_wrong_node_is_heard_at_the_right_one() {
    let slow = LinkOptions { look_every: Duration::from_secs(600), ..LinkOptions::default() };
    let Some(mut all) = Listened::start(slow, Aof::Off).await else { return };
    let (channel, slot) = all.here.clone();
    all.listening.unsubscribe(&channel);
    let (from, to) = (all.cluster.owner(slot), all.third());
    until("nobody listens", || ears(&all.cluster, from, &channel) == "0").await;
    all.cluster.move_slot(slot, from, to);
    all.listening.subscribe(&channel);
    assert_eq!(next(&mut all.events).await, gap(&channel));
    all.both_come().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_ends_takes_only_its_own_channels_and_brings_them_back() {
    let options = LinkOptions::default();
    let Some(mut all) = Listened::start(options, Aof::Always).await else { return };
    let ((here, slot), (there, _)) = (all.here.clone(), all.there.clone());
    let lost = all.cluster.owner(slot);
    all.cluster.server_mut(lost).kill();
    until("it is known", || all.listening.down().is_some()).await;
    assert!(!all.listening.hears(&here) && all.listening.hears(&there));
    all.cluster.server_mut(lost).restart();
    assert_eq!(next(&mut all.events).await, gap(&here), "and of no other");
    all.cluster.await_whole();
    all.both_come().await;
    assert_eq!(all.listening.down(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_of_one_node_that_is_addressed_as_a_server_is_heard_too() {
    if !wanted() {
        return;
    }
    let cluster = RedisCluster::start(1);
    let link = link(&cluster.server(0).url());
    let (listening, mut events) = link.listen();
    let channel = link.address().key("default", "t:");
    listening.subscribe(&channel);
    assert_eq!(next(&mut events).await, gap(&channel));
    link.publish(&channel, "x").await.unwrap();
    assert_eq!(next(&mut events).await, message(&channel, "x"));
    assert_eq!(ears(&cluster, 0, &channel), "1");
}
