/* yaml.c: builds a tree from libyaml's events. Recursive; the depth limit bounds the stack. Differences from YAML 1.1:
 * no tags, no merge keys, one document, keys are unique strings, aliases are copies, `${VAR}` in values is expanded. */
#include "allocate.h"
#include "document_build.h"
#include "error.h"
#include "text_check.h"
#include "variable.h"
#include <string.h>
#include <yaml.h>

struct anchor {
    const char *name;
    const stki_node *node; /* NULL: still open */
};

struct reader {
    yaml_parser_t parser;
    stki_document *document;
    const stki_location *top;
    int anchor_count;
    struct anchor anchors[STKI_DOCUMENT_ANCHORS];
    stk_error *err;
};

static stk_status read_node(struct reader *reader, yaml_event_t *event, stki_location location, stki_node **out);

/* ---- errors from libyaml ---- */

static void set_location(const struct reader *reader, const yaml_mark_t *mark, stki_location *location)
{
    bool lines = reader->top->line > 0;

    location->line = lines ? (int)mark->line + 1 : 0;
    location->column = lines ? (int)mark->column + 1 : 0;
}

static stk_status fail_parser(struct reader *reader)
{
    const yaml_parser_t *parser = &reader->parser;
    stki_location location = *reader->top;
    const char *problem = parser->problem ? parser->problem : "unreadable";

    if (parser->error == YAML_MEMORY_ERROR)
        return stki_fail(reader->err, STK_E_MEMORY, "%s: out of memory while reading YAML", location.file);
    set_location(reader, &parser->problem_mark, &location);
    if (parser->context && reader->top->line > 0 && parser->context_mark.line != parser->problem_mark.line)
        return stki_fail_location(reader->err, STK_E_CONFIG, &location, "not YAML: %s, %s that begins on line %d",
                                  problem, parser->context, (int)parser->context_mark.line + 1);
    return stki_fail_location(reader->err, STK_E_CONFIG, &location, "not YAML: %s%s%s", problem,
                              parser->context ? ", " : "", parser->context ? parser->context : "");
}

static stk_status next_event(struct reader *reader, yaml_event_t *event)
{
    return yaml_parser_parse(&reader->parser, event) ? STK_OK : fail_parser(reader);
}

/* ---- anchors ---- */

static struct anchor *find_anchor(struct reader *reader, const char *name)
{
    int i;

    for (i = 0; i < reader->anchor_count; i++)
        if (strcmp(reader->anchors[i].name, name) == 0)
            return &reader->anchors[i];
    return NULL;
}

/* Defines the anchor `name` (NULL: none) for the node that follows; from then on it refers to that node, even if the
 * name was used before. */
static stk_status open_anchor(struct reader *reader, const stki_location *location, const yaml_char_t *name,
                              struct anchor **out)
{
    stk_status status;
    const char *copy;

    *out = NULL;
    if (!name)
        return STK_OK;
    *out = find_anchor(reader, (const char *)name);
    if (!*out) {
        if (reader->anchor_count == STKI_DOCUMENT_ANCHORS)
            return stki_fail_location(reader->err, STK_E_LIMIT, location, "the file has more than %d anchors",
                                      STKI_DOCUMENT_ANCHORS);
        status = stki_document_text(reader->document, (const char *)name, (int64_t)strlen((const char *)name), location,
                                    &copy, reader->err);
        if (status != STK_OK)
            return status;
        *out = &reader->anchors[reader->anchor_count++];
        (*out)->name = copy;
    }
    (*out)->node = NULL;
    return STK_OK;
}

static stk_status read_alias(struct reader *reader, const yaml_event_t *event, const stki_location *location,
                             stki_node **out)
{
    const char *name = (const char *)event->data.alias.anchor;
    const struct anchor *anchor = find_anchor(reader, name);

    if (!anchor)
        return stki_fail_location(reader->err, STK_E_CONFIG, location, "no anchor &%.60s precedes the alias *%.60s",
                                  name, name);
    if (!anchor->node)
        return stki_fail_location(reader->err, STK_E_CONFIG, location, "the alias *%.60s is inside its own anchor",
                                  name);
    return stki_node_copy(reader->document, anchor->node, location, out, reader->err);
}

/* ---- nodes ---- */

static stk_status refuse_tag(struct reader *reader, const stki_location *location, const yaml_char_t *tag)
{
    return tag ? stki_fail_location(reader->err, STK_E_CONFIG, location,
                                    "found the tag %.60s, but tags are not allowed", (const char *)tag)
               : STK_OK;
}

static bool is_null_word(const char *text, int64_t length)
{
    return length == 0 || (length == 1 && text[0] == '~') || (length == 4 && memcmp(text, "null", 4) == 0);
}

static stk_status read_scalar(struct reader *reader, yaml_event_t *event, const stki_location *location,
                              stki_node **out)
{
    char *value = (char *)event->data.scalar.value;
    int64_t length = stki_variables_show(value, (int64_t)event->data.scalar.length);
    bool quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    const char *text = value;
    char what[48];
    stk_status status = refuse_tag(reader, location, event->data.scalar.tag);

    if (status != STK_OK)
        return status;
    if (stki_text_check(text, length, STKI_TEXT_VALUE, what) >= 0)
        return stki_fail_location(reader->err, STK_E_CONFIG, location,
                                  "the text contains characters that are not allowed in a config: %s", what);
    if (memchr(text, '$', (size_t)length))
        status = stki_variables_expand(reader->document, location, &text, &length, reader->err);
    if (status == STK_OK)
        status = stki_node_create(reader->document, STKI_NODE_SCALAR, location, out, reader->err);
    if (status != STK_OK)
        return status;
    (*out)->quoted = quoted;
    if (length == 0 || (!quoted && is_null_word(text, length)))
        return STK_OK;
    return stki_document_text(reader->document, text, length, location, &(*out)->text, reader->err);
}

/* Stores the key in `location`. */
static stk_status read_key(struct reader *reader, yaml_event_t *event, const stki_node *map, stki_location *location)
{
    char *text = (char *)event->data.scalar.value;
    int64_t length;
    const stki_node *before;
    char what[48];
    stk_status status;

    set_location(reader, &event->start_mark, location);
    location->key = NULL;
    if (event->type != YAML_SCALAR_EVENT)
        return stki_fail_location(reader->err, STK_E_CONFIG, location, "a key must be plain text");
    status = refuse_tag(reader, location, event->data.scalar.tag);
    if (status != STK_OK)
        return status;
    if (event->data.scalar.anchor)
        return stki_fail_location(reader->err, STK_E_CONFIG, location, "a key cannot have an anchor");
    length = stki_variables_show(text, (int64_t)event->data.scalar.length);
    if (length == 0)
        return stki_fail_location(reader->err, STK_E_CONFIG, location, "the key is empty");
    if (length > STKI_DOCUMENT_KEY_BYTES)
        return stki_fail_location(reader->err, STK_E_LIMIT, location, "the key is longer than %d bytes",
                                  STKI_DOCUMENT_KEY_BYTES);
    if (stki_text_check(text, length, STKI_TEXT_KEY, what) >= 0)
        return stki_fail_location(reader->err, STK_E_CONFIG, location, "invalid key: %s", what);
    status = stki_document_text(reader->document, text, length, location, &location->key, reader->err);
    if (status != STK_OK)
        return status;
    location->key_line = location->line;
    location->key_column = location->column;
    if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && strcmp(text, "<<") == 0)
        return stki_fail_location(reader->err, STK_E_CONFIG, location,
                                  "merge keys are not allowed; use include or repeat the keys");
    before = stki_node_get(map, text);
    if (before && before->key_line > 0)
        return stki_fail_location(reader->err, STK_E_CONFIG, location, "duplicate key, first on line %d",
                                  before->key_line);
    return before ? stki_fail_location(reader->err, STK_E_CONFIG, location, "duplicate key") : STK_OK;
}

static stk_status read_items(struct reader *reader, yaml_event_type_t end, stki_location below, stki_node *node)
{
    for (;;) {
        yaml_event_t event;
        stki_node *child = NULL;
        stk_status status = next_event(reader, &event);

        if (status != STK_OK)
            return status;
        if (event.type == end) {
            yaml_event_delete(&event);
            return STK_OK;
        }
        if (node->kind == STKI_NODE_MAP) {
            status = read_key(reader, &event, node, &below);
            yaml_event_delete(&event);
            if (status == STK_OK)
                status = next_event(reader, &event);
            if (status != STK_OK)
                return status;
        }
        status = read_node(reader, &event, below, &child);
        if (status == STK_OK)
            status = stki_node_append(reader->document, node, child, reader->err);
        if (status != STK_OK)
            return status;
    }
}

static stk_status read_collection(struct reader *reader, const yaml_event_t *event, const stki_location *location,
                                  stki_node **out)
{
    bool map = event->type == YAML_MAPPING_START_EVENT;
    stki_location below = *location;
    stk_status status =
        refuse_tag(reader, location, map ? event->data.mapping_start.tag : event->data.sequence_start.tag);

    if (status == STK_OK)
        status = stki_node_create(reader->document, map ? STKI_NODE_MAP : STKI_NODE_LIST, location, out, reader->err);
    if (status != STK_OK)
        return status;
    below.parent = *out;
    below.key = NULL;
    below.key_line = below.key_column = 0;
    below.depth++;
    return read_items(reader, map ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT, below, *out);
}

/* Deletes the event. */
static stk_status read_node(struct reader *reader, yaml_event_t *event, stki_location location, stki_node **out)
{
    struct anchor *anchor = NULL;
    stk_status status;

    set_location(reader, &event->start_mark, &location);
    switch (event->type) {
    case YAML_ALIAS_EVENT:
        status = read_alias(reader, event, &location, out);
        break;
    case YAML_SCALAR_EVENT:
        status = open_anchor(reader, &location, event->data.scalar.anchor, &anchor);
        if (status == STK_OK)
            status = read_scalar(reader, event, &location, out);
        break;
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        status = open_anchor(reader, &location,
                             event->type == YAML_MAPPING_START_EVENT ? event->data.mapping_start.anchor
                                                                     : event->data.sequence_start.anchor,
                             &anchor);
        if (status == STK_OK)
            status = read_collection(reader, event, &location, out);
        break;
    default:
        status = stki_fail_location(reader->err, STK_E_CONFIG, &location, "not YAML: a value is missing");
    }
    yaml_event_delete(event);
    if (status == STK_OK && anchor)
        anchor->node = *out;
    return status;
}

/* Reads the stream: STREAM-START (DOCUMENT-START node DOCUMENT-END)? STREAM-END. */
static stk_status read_stream(struct reader *reader, stki_node **out)
{
    bool seen = false;

    *out = NULL;
    for (;;) {
        yaml_event_t event;
        stki_location location = *reader->top;
        stk_status status = next_event(reader, &event);
        yaml_event_type_t type = status == STK_OK ? event.type : YAML_NO_EVENT;

        if (status != STK_OK)
            return status;
        if (type == YAML_STREAM_END_EVENT || type == YAML_STREAM_START_EVENT || type == YAML_DOCUMENT_END_EVENT) {
            yaml_event_delete(&event);
            if (type == YAML_STREAM_END_EVENT)
                return STK_OK;
        } else if (type == YAML_DOCUMENT_START_EVENT) {
            set_location(reader, &event.start_mark, &location);
            yaml_event_delete(&event);
            if (seen)
                return stki_fail_location(reader->err, STK_E_CONFIG, &location,
                                          "a second document begins, but only one is allowed");
            seen = true;
        } else {
            status = read_node(reader, &event, location, out);
            if (status != STK_OK)
                return status;
        }
    }
}

static stk_status check_text(stki_document *document, const char *text, int64_t length, const stki_location *location,
                             stk_error *err)
{
    stki_location bad = *location;
    char what[48];
    int64_t at, i, line_start = 0;

    if (length > STKI_DOCUMENT_BYTES - document->read_bytes)
        return stki_fail_location(err, STK_E_LIMIT, location, "the config has more than %d bytes of text",
                                  STKI_DOCUMENT_BYTES);
    document->read_bytes += length;
    at = stki_text_check(text, length, STKI_TEXT_FILE, what);
    if (at < 0)
        return STK_OK;
    for (i = 0; i < at && bad.line > 0; i++)
        if (text[i] == '\n') {
            bad.line++;
            line_start = i + 1;
        }
    bad.column = bad.line > 0 ? (int)(at - line_start) + 1 : 0;
    return stki_fail_location(err, STK_E_CONFIG, &bad, "not text: %s", what);
}

stk_status stki_yaml_read(stki_document *document, const char *text, int64_t length, const stki_location *location,
                          stki_node **out, stk_error *err)
{
    struct reader reader = {.document = document, .top = location, .err = err};
    char *hidden = NULL;
    stk_status status;

    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) { /* the byte order mark that some editors write */
        text += 3;
        length -= 3;
    }
    status = check_text(document, text, length, location, err);
    if (status == STK_OK)
        status = stki_variables_hide(&text, &length, &hidden, err);
    if (status != STK_OK)
        return status;
    if (yaml_parser_initialize(&reader.parser)) {
        yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
        yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text, (size_t)length);
        status = read_stream(&reader, out);
        yaml_parser_delete(&reader.parser);
    } else {
        status = stki_fail_memory(err, sizeof reader.parser, "the YAML parser");
    }
    stki_free(hidden);
    return status;
}
