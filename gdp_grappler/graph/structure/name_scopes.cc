// Scopes in the names of a large graph's ops. scopes.py and native_scopes.py
// state the rules. tests/helpers/naive_scopes.py has a simple version.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

using Text = std::string_view;
using Parts = std::vector<Text>;

// Deeper scopes are ignored, and so are numbers in longer parts of names.
constexpr size_t kDeepest = 8, kLongest = 200;
// Further digits of a number are ignored.
constexpr size_t kDigits = 9;
constexpr Text kAnyWrapper = "gradient", kTape = "gradient_tape",
               kGradient = "_grad";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool StartsWith(Text text, Text prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

bool EndsWith(Text text, Text suffix) {
  return text.size() >= suffix.size() &&
         text.substr(text.size() - suffix.size()) == suffix;
}

// Start of the digits at the end of the first `end` characters.
size_t DigitsBegin(Text text, size_t end) {
  while (end > 0 && IsDigit(text[end - 1])) --end;
  return end;
}

// Splits `bytes` into n texts. `ends` [n] has the end of each text.
std::vector<Text> Split(int64_t n, const char* bytes, const int64_t* ends) {
  std::vector<Text> result;
  result.reserve(n);
  int64_t begin = 0;
  for (int64_t k = 0; k < n; ++k) {
    result.emplace_back(bytes + begin, ends[k] - begin);
    begin = ends[k];
  }
  return result;
}

Text UpTo(Text text, size_t end) {
  return end == Text::npos ? Text() : text.substr(0, end);
}

// Distinct texts, numbered in the order in which they appear.
class Numbers {
 public:
  int32_t Of(Text text) {
    // Neighbours in a graph usually have the same scope.
    if (last_ >= 0 && text == texts_[last_]) return last_;
    const auto [at, fresh] =
        numbers_.emplace(text, static_cast<int32_t>(texts_.size()));
    if (fresh) texts_.push_back(text);
    return last_ = at->second;
  }

  const std::vector<Text>& texts() const { return texts_; }

 private:
  std::unordered_map<Text, int32_t> numbers_;
  std::vector<Text> texts_;
  int32_t last_ = -1;
};

// `gradients?(_\d+)?|gradient_tape(_\d+)?`
bool IsWrapper(Text part) {
  const size_t digits = DigitsBegin(part, part.size());
  if (digits > 0 && digits < part.size() && part[digits - 1] == '_') {
    part = part.substr(0, digits - 1);
  }
  return part == "gradient" || part == "gradients" || part == kTape;
}

// A part of a name without its numbers, and both numbers; -1 for none.
struct Numbered {
  Text base;
  int64_t number = -1, again = -1;
};

int64_t Value(Text digits) {
  int64_t result = 0;
  for (const char c : digits.substr(0, kDigits)) result = 10 * result + c - '0';
  return result;
}

size_t Characters(Text text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (c & 0xC0) != 0x80; });
}

// `(.*?)(\d+)(?:_(\d+))?`
Numbered NumberedOf(Text part) {
  const size_t last = DigitsBegin(part, part.size());
  if (last == part.size() || Characters(part) > kLongest) return {part};
  size_t begin = last, end = part.size();
  if (last > 1 && part[last - 1] == '_' && IsDigit(part[last - 2])) {
    end = last - 1;
    begin = DigitsBegin(part, end);
  }
  const Text base = part.substr(0, begin);
  if (base.find('\n') != Text::npos) return {part};
  return {base, Value(part.substr(begin, end - begin)),
          end < part.size() ? Value(part.substr(last)) : -1};
}

// A scope: whether its ops are gradients, the name of the forward op, and the
// parts of the scope.
struct Parsed {
  bool backward = false;
  std::string forward;
  Parts parts;
};

Parts PartsOf(Text path, Text separators) {
  Parts result;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end =
        std::min(path.find_first_of(separators, begin), path.size());
    result.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

Parsed ParsedOf(Text path) {
  Parsed result;
  if (!path.empty()) result.parts = PartsOf(path, "./");
  if (path.find(kAnyWrapper) == Text::npos) return result;
  const Parts all = result.parts;
  const auto wrapper = std::find_if(all.begin(), all.end(), IsWrapper);
  if (wrapper == all.end()) return result;
  const auto end = std::find_if(wrapper + 1, all.end(), [](Text part) {
    return EndsWith(part, kGradient);
  });
  Parts inside(wrapper + 1, end);
  Parts whole;
  if (end != all.end()) {
    inside.push_back(end->substr(0, end->size() - kGradient.size()));
  } else {
    if (!StartsWith(*wrapper, kTape)) inside.emplace_back();
    whole.assign(all.begin(), wrapper);
  }
  whole.insert(whole.end(), inside.begin(), inside.end());
  for (size_t k = 0; k < whole.size(); ++k) {
    if (k) result.forward += '/';
    result.forward += whole[k];
  }
  if (!inside.empty()) inside.pop_back();
  result.parts = std::move(inside);
  result.backward = true;
  return result;
}

struct HashOfPlace {
  size_t operator()(const std::pair<int32_t, Text>& key) const {
    return std::hash<Text>()(key.second) * 31 + key.first;
  }
};

// A tree of scopes. A place is identified by its parent's number and its last
// part.
class Tree {
 public:
  std::vector<int64_t> parents{0}, families{-1, -1}, numbers{-1, -1},
      siblings{-1, -1};

  int32_t Place(const Parts& parts) {
    int32_t at = 0;
    for (size_t k = 0; k < std::min(parts.size(), kDeepest); ++k) {
      const auto known = places_.find({at, parts[k]});
      at = known == places_.end() ? Add(at, parts[k]) : known->second;
    }
    return at;
  }

 private:
  using Key = std::pair<int64_t, std::string>;

  std::unordered_map<std::pair<int32_t, Text>, int32_t, HashOfPlace> places_;
  std::map<Key, int64_t> families_, scopes_;
  std::vector<Key> names_{{-1, ""}};

  static int64_t NumberOf(std::map<Key, int64_t>* known, const Key& key) {
    return known->emplace(key, static_cast<int64_t>(known->size()))
        .first->second;
  }

  int32_t Add(int32_t around, Text part) {
    const Numbered found = NumberedOf(part);
    std::string name(found.base);
    while (!name.empty() && (name.back() == '_' || name.back() == '-')) {
      name.pop_back();
    }
    const int64_t family = families[2 * around];
    AddEntry({family, name}, found.number, names_[around]);
    AddEntry({family, name + (found.number >= 0 ? '#' : '@')}, found.again,
             {around, name + std::to_string(found.number)});
    parents.push_back(around);
    names_.emplace_back(around, part);
    return places_
        .emplace(std::pair(around, part),
                 static_cast<int32_t>(names_.size() - 1))
        .first->second;
  }

  void AddEntry(const Key& family, int64_t number, const Key& scope) {
    families.push_back(NumberOf(&families_, family));
    numbers.push_back(number);
    siblings.push_back(NumberOf(&scopes_, scope));
  }
};

// Removes parts that begin with one of the wrappers.
std::string Unwrapped(Text scope, const std::vector<Text>& wrappers) {
  std::string result;
  bool first = true;
  for (const Text part : PartsOf(scope, "/")) {
    if (std::any_of(wrappers.begin(), wrappers.end(),
                    [&](Text w) { return StartsWith(part, w); })) {
      continue;
    }
    if (!first) result += '/';
    first = false;
    result += part;
  }
  return result;
}

// The first `depth` parts of a text.
Text First(Text text, int32_t depth) {
  size_t at = Text::npos;
  for (int32_t k = 0; k < depth; ++k) {
    at = text.find('/', k ? at + 1 : 0);
    if (at == Text::npos) return text;
  }
  return text.substr(0, at);
}

// The alphabetical ranks of distinct texts.
std::vector<int32_t> Ranks(const std::vector<Text>& texts) {
  std::vector<int32_t> order(texts.size()), result(texts.size());
  for (size_t k = 0; k < order.size(); ++k) order[k] = static_cast<int32_t>(k);
  std::sort(order.begin(), order.end(),
            [&](int32_t a, int32_t b) { return texts[a] < texts[b]; });
  for (size_t k = 0; k < order.size(); ++k) {
    result[order[k]] = static_cast<int32_t>(k);
  }
  return result;
}

}  // namespace

// The scopes of N names: S distinct ones, and a tree of P places.
struct GdpScopes {
  std::vector<int32_t> scopes;                        // [N]
  std::vector<int64_t> backward, forward_ops, place;  // [S]
  Tree tree;

  GdpScopes(int64_t n, const char* bytes, const int64_t* ends) {
    const std::vector<Text> names = Split(n, bytes, ends);
    Numbers distinct;
    std::unordered_map<Text, int64_t> ops;
    ops.reserve(n);
    for (int64_t op = 0; op < n; ++op) {
      const Text name = names[op];
      ops[name] = op;
      Text scope = UpTo(name, name.rfind('/'));
      if (scope.empty()) scope = UpTo(name, name.rfind('.'));
      scopes.push_back(distinct.Of(scope));
    }
    for (const Text path : distinct.texts()) {
      const Parsed parsed = ParsedOf(path);
      const auto op = ops.find(parsed.forward);
      backward.push_back(parsed.backward);
      forward_ops.push_back(op == ops.end() ? -1 : op->second);
      place.push_back(tree.Place(parsed.parts));
    }
  }
};

extern "C" {

// Reads `n` names from `bytes`. `ends` has the end of each name. Null if memory
// runs out.
GdpScopes* gdp_scopes_read(int64_t n, const char* bytes,
                           const int64_t* ends) try {
  return new GdpScopes(n, bytes, ends);
} catch (const std::bad_alloc&) {
  return nullptr;
}

void gdp_scopes_destroy(GdpScopes* scopes) { delete scopes; }

// Writes S and P to `sizes`.
void gdp_scopes_sizes(const GdpScopes* scopes, int64_t* sizes) {
  sizes[0] = static_cast<int64_t>(scopes->place.size());
  sizes[1] = static_cast<int64_t>(scopes->tree.parents.size());
}

// Writes the scope of each name to `of_names` [n]. Writes to `of_scopes` [3, S]
// whether each scope has gradients, of which op, and its place. Writes the
// parent of each place to `parents` [P], and the family, number and sibling of
// both entries of each place to `entries` [3, 2 P].
void gdp_scopes_copy(const GdpScopes* scopes, int32_t* of_names,
                     int64_t* of_scopes, int64_t* parents, int64_t* entries) {
  std::copy(scopes->scopes.begin(), scopes->scopes.end(), of_names);
  for (const auto* column :
       {&scopes->backward, &scopes->forward_ops, &scopes->place}) {
    of_scopes = std::copy(column->begin(), column->end(), of_scopes);
  }
  const Tree& tree = scopes->tree;
  std::copy(tree.parents.begin(), tree.parents.end(), parents);
  for (const auto* column : {&tree.families, &tree.numbers, &tree.siblings}) {
    entries = std::copy(column->begin(), column->end(), entries);
  }
}

// Writes to `labels` [D, n] the alphabetical ranks of the first parts of each
// name's scope. `depths` [D] has the numbers of parts, the largest first. Parts
// that begin with one of `num_wrappers` wrappers are left out before. Returns
// -1 if memory runs out.
int32_t gdp_scope_levels(int64_t n, const char* bytes, const int64_t* ends,
                         int64_t num_wrappers, const char* wrapper_bytes,
                         const int64_t* wrapper_ends, int64_t num_depths,
                         const int32_t* depths, int32_t* labels) try {
  const auto wrappers = Split(num_wrappers, wrapper_bytes, wrapper_ends);
  Numbers scopes;
  std::vector<int32_t> scope_of;
  scope_of.reserve(n);
  for (const Text name : Split(n, bytes, ends)) {
    scope_of.push_back(scopes.Of(UpTo(name, name.rfind('/'))));
  }
  std::deque<std::string> kept;
  std::vector<Text> texts;  // Of all scopes.
  for (const Text scope : scopes.texts()) {
    kept.push_back(Unwrapped(scope, wrappers));
    texts.push_back(kept.back());
  }
  for (int64_t level = 0; level < num_depths; ++level) {
    Numbers distinct;
    std::vector<int32_t> numbers;
    for (Text& text : texts) {
      text = First(text, depths[level]);
      numbers.push_back(distinct.Of(text));
    }
    const std::vector<int32_t> ranks = Ranks(distinct.texts());
    for (int64_t k = 0; k < n; ++k) *labels++ = ranks[numbers[scope_of[k]]];
  }
  return 0;
} catch (const std::bad_alloc&) {
  return -1;
}

}  // extern "C"
