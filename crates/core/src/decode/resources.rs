//! Resources of a pool: whole sets, additions, and calls on one resource. Their data is taken as it
//! was sent, and no refusal repeats it.

use serde::Serializer;

use super::fields::{self, Value, document};
use super::forms::{Content, Form, List, Name, Text, ValueKind, Whole};
use super::lines::{LineRead, read_line, read_lines};
use super::object::{AsBody, SentBody, bounded_bodies, object};
use super::parameters::Queried;
use super::paths::{pool_path, resource_path};
use super::raw_call::{EncodedBody, http_calls};
use crate::at::At;
use crate::bounded::{Bounded, COUNT, SetIds};
use crate::bounds::{ERROR_BYTES_MAX, ITEMS_MAX, RESOURCE_DATA_BYTES_MAX, TAGS_MAX};
use crate::json::Kind;
use crate::names::{PoolName, ResourceId, Tag};
use crate::refusal::Refusal;
use crate::requests::{
    AddResources, BanResource, CoolResource, DeleteResource, GetResource, ListResources,
    PatchResource, RestoreResource, SyncResources,
};
use crate::secret::Json;
use crate::sentences::{BodyRefusal, SetPlace};
use crate::settings::{NewResource, ResourceView};

object! {
    ResourceFields "a resource" "NewResource"
    answered ResourceView;
    whole NewResource;
    fields {
        id: ResourceId = Name(ResourceId::parse, Some(ResourceId::BYTES_MAX)), required "\"id\": \"13800000000\"",
            "The id of the resource, 1 to 256 bytes; it must not stand twice in a whole set.";
        data: Json = Content(RESOURCE_DATA_BYTES_MAX), default,
            "What its holder gets and nobody else is shown: any JSON, at most 64 KiB; null if absent.";
        tags: Vec<Tag> = Tags, default, "Words by which a need asks for it, at most 16.";
        slots: u32 = Whole(COUNT), or 1,
            "How many leases may hold it at once, 1 to 1,000,000,000; 1 if absent.";
    }
}

object! {
    ResourcePatchFields "a patch of a resource" "ResourcePatch"
    answered ResourceView;
    patch PatchResource(pool: PoolName, resource: ResourceId);
    fields {
        data: Json = Content(RESOURCE_DATA_BYTES_MAX), nullable,
            "The new data, at most 64 KiB, for the next lease; null is null.";
        tags: Vec<Tag> = Tags, nullable,
            "The new tags, at most 16, which replace all of the old ones; null is none.";
        slots: u32 = Whole(COUNT), nullable, "The new number of leases that may hold it at once; null is 1.";
    }
}

object! {
    BanFields "a ban" "Ban"
    call BanResource(pool: PoolName, resource: ResourceId);
    fields {
        reason: String = Text(ERROR_BYTES_MAX), optional, "Why it is banned, for people; at most 8 KiB.";
    }
}

/// At most 16 tags; a repeated tag counts once.
struct Tags;

const TAG_LIST: List<Name<Tag>> = List(0..=TAGS_MAX, Name(Tag::parse, Some(Tag::BYTES_MAX)));

impl Form<Vec<Tag>> for Tags {
    fn read(&self, value: Value<'_, '_>) -> Result<Vec<Tag>, Refusal> {
        let mut tags: Vec<Tag> = Vec::new();
        for tag in TAG_LIST.read(value)? {
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        Ok(tags)
    }
    fn check(&self, value: &Vec<Tag>, at: &At<'_>) -> Result<(), Refusal> {
        TAG_LIST.check(value, at)
    }
    fn write<S: Serializer>(&self, value: &Vec<Tag>, to: S) -> Result<S::Ok, S::Error> {
        TAG_LIST.write(value, to)
    }
    fn kind(&self) -> ValueKind {
        Form::<Vec<Tag>>::kind(&TAG_LIST)
    }
}

http_calls! {
    SyncResources(name) query, body "ResourceSet",
        |call| {
            let request = SyncResources::of_query((pool_path(name)?, Vec::new()), call.query)?;
            Ok(SyncResources { resources: whole_set(call.body)?, ..request })
        },
        |sync| EncodedBody::set(&sync.resources, usize::MAX);
    AddResources(name) body "NewResources",
        |call| add_resources(name, call.body),
        |add| EncodedBody::json(&AsBody(add.resources.as_slice()));
    ListResources(pool: pool_path) query;
    GetResource(pool: pool_path, resource: resource_path);
    PatchResource(pool: pool_path, resource: resource_path) body;
    DeleteResource(pool: pool_path, resource: resource_path);
    CoolResource(pool: pool_path, resource: resource_path) body;
    BanResource(pool: pool_path, resource: resource_path) optional body;
    RestoreResource(pool: pool_path, resource: resource_path);
}

/// Reads a whole set: an array of any length.
fn whole_set(body: &[u8]) -> Result<Vec<NewResource>, Refusal> {
    let document = document(body)?;
    let body = Value::body(&document);
    if body.node.kind() != Kind::Array {
        return Err(body.refuse(BodyRefusal::NotASet { noun: body.node.kind().noun().into() }));
    }
    let (mut ids, mut index) = (SetIds::default(), 0);
    body.each_indexed(0..=usize::MAX, |item| {
        let one = ResourceFields.read(item)?;
        ids.once(one.id.clone(), SetPlace::Item(index), &At::Member(&item.at, "id"))?;
        index += 1;
        Ok(one)
    })
}

/// Reads `POST /v1/pools/{name}/resources` with one object, or an array of 1 to 1,000.
pub fn add_resources(name: &str, body: &[u8]) -> Result<AddResources, Refusal> {
    let pool = pool_path(name)?;
    let document = document(body)?;
    let body = Value::body(&document);
    let resources = match body.node.kind() {
        Kind::Array => body.each_indexed(1..=ITEMS_MAX, |item| ResourceFields.read(item))?,
        _ => vec![ResourceFields.read(body)?],
    };
    Ok(AddResources { pool, resources })
}

/// Reads one line of NDJSON, of at most 512 KiB. The caller counts the lines.
pub fn resource_line(line: &[u8]) -> Result<NewResource, Refusal> {
    let document = fields::line(line)?;
    ResourceFields.read(Value::body(&document))
}

/// Reads a whole set in NDJSON, and keeps its ids to refuse repeats.
#[derive(Debug, Default)]
pub struct ResourceLines {
    ids: SetIds<ResourceId>,
}

impl ResourceLines {
    /// Reads one numbered line of at most 512 KiB; a refusal has the number.
    pub fn read(&mut self, line: (usize, LineRead<'_>)) -> Result<NewResource, Refusal> {
        read_line(line, |number, line| self.read_whole(number, line))
    }

    fn read_whole(&mut self, number: usize, line: &[u8]) -> Result<NewResource, Refusal> {
        let one = resource_line(line)?;
        self.ids.once(one.id.clone(), SetPlace::Line(number), &At::Member(&At::Body, "id"))?;
        Ok(one)
    }

    /// Reads a whole body. Blank lines are counted and skipped.
    pub fn read_all(mut self, body: &[u8]) -> Result<Vec<NewResource>, Refusal> {
        read_lines(body, |line| self.read(line))
    }
}
impl Bounded for SyncResources {
    fn within_bounds(&self) -> Result<(), Refusal> {
        self.query_within_bounds()?;
        let mut ids = SetIds::default();
        for (index, one) in self.resources.iter().enumerate() {
            let at = At::Item(&At::Body, index);
            let once = ids.once(&one.id, SetPlace::Item(index), &At::Member(&at, "id"));
            once.and_then(|()| one.check_body(&at)).map_err(|no| no.item(index))?;
        }
        Ok(())
    }
}

impl Bounded for AddResources {
    fn within_bounds(&self) -> Result<(), Refusal> {
        let (sent, most) = (self.resources.len(), ITEMS_MAX);
        if !(1..=most).contains(&sent) {
            return Err(At::Body.refuse(BodyRefusal::ResourcesOutside { sent, most }));
        }
        for (index, one) in self.resources.iter().enumerate() {
            one.check_body(&At::Item(&At::Body, index)).map_err(|no| no.item(index))?;
        }
        Ok(())
    }
}

bounded_bodies! { PatchResource BanResource }
