// Options: precedence, sources, spelling, refusals, and that the written configuration reads back.
#include "yolohpc/cli/options.hpp"

#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "yolohpc/base/error.hpp"
#include "yolohpc/base/files.hpp"

#include "support/golden.hpp"

namespace yolohpc::cli {
namespace {

using Words = std::vector<std::string>;

// Parses `train` with the one required option given.
ParsedOptions train(Words words, Environment const& environment = {},
                    std::string const& config = {}) {
  words.insert(words.begin(), {"--data", "packed"});
  if (!config.empty()) words.insert(words.begin(), {"--config", "some.cfg"});
  return parse(yolohpc_table(), "train", words, environment,
               [&](std::string const&) { return config; });
}

std::string usage_error(std::function<void()> const& action) {
  try {
    action();
  } catch (base::Error const& error) {
    EXPECT_EQ(error.code(), base::ExitCode::usage) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

std::string train_error(Words const& words, Environment const& environment = {},
                        std::string const& config = {}) {
  return usage_error([&] { train(words, environment, config); });
}

void expect_parts(std::string const& text, Words const& parts) {
  for (auto const& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
  }
}

// Names and defaults are those of the contract, written out here once more on purpose.
TEST(Options, HaveTheNamesAndDefaultsOfTheContract) {
  std::map<std::string, std::string> const contract = {{"train-split", "train"},
                                                       {"val-split", "val"},
                                                       {"model", "yolo11n"},
                                                       {"weights", ""},
                                                       {"epochs", "100"},
                                                       {"batch", "16"},
                                                       {"imgsz", "640"},
                                                       {"accumulate", "1"},
                                                       {"nbs", "64"},
                                                       {"optimizer", "auto"},
                                                       {"lr0", "0.01"},
                                                       {"lrf", "0.01"},
                                                       {"cos-lr", "off"},
                                                       {"momentum", "0.937"},
                                                       {"weight-decay", "0.0005"},
                                                       {"warmup-epochs", "3"},
                                                       {"lr-scaling", "none"},
                                                       {"lr-reference-batch", "64"},
                                                       {"box", "7.5"},
                                                       {"cls", "0.5"},
                                                       {"dfl", "1.5"},
                                                       {"hsv-h", ".015"},
                                                       {"hsv-s", ".7"},
                                                       {"hsv-v", ".4"},
                                                       {"degrees", "0"},
                                                       {"translate", ".1"},
                                                       {"scale", ".5"},
                                                       {"shear", "0"},
                                                       {"flipud", "0"},
                                                       {"fliplr", ".5"},
                                                       {"mosaic", "1"},
                                                       {"mixup", "0"},
                                                       {"close-mosaic", "10"},
                                                       {"multi-scale", "off"},
                                                       {"multi-scale-every", "step"},
                                                       {"tf32", "on"},
                                                       {"channels-last", "on"},
                                                       {"cuda-graph", "auto"},
                                                       {"checkpoint-activations", "off"},
                                                       {"zero", "0"},
                                                       {"sync-bn", "off"},
                                                       {"bucket-mib", "25"},
                                                       {"overlap", "on"},
                                                       {"device", "auto"},
                                                       {"comm", "auto"},
                                                       {"comm-timeout", "600"},
                                                       {"workers", "auto"},
                                                       {"threads", "auto"},
                                                       {"stage", ""},
                                                       {"shuffle", "global"},
                                                       {"on-bad-sample", "replace"},
                                                       {"seed", "0"},
                                                       {"deterministic", "off"},
                                                       {"ema-decay", "0.9999"},
                                                       {"patience", "100"},
                                                       {"val-every", "1"},
                                                       {"save-every", "1"},
                                                       {"save-steps", "0"},
                                                       {"keep", "2"},
                                                       {"resume", ""},
                                                       {"walltime", "auto"},
                                                       {"stop-before", "120"},
                                                       {"max-steps", "0"},
                                                       {"on-checkpoint", ""},
                                                       {"exist-ok", "off"},
                                                       {"log-samples", "off"},
                                                       {"val-data", ""}};
  auto const options = train({});
  for (auto const& [name, value] : contract) {
    EXPECT_EQ(options.get<std::string>(name), value) << name;
    EXPECT_FALSE(options.was_set(name)) << name;
  }
  auto const val = parse("val", {"--weights", "w", "--data", "d"}, {});
  EXPECT_EQ(val.get<double>("conf"), 0.001);
  EXPECT_EQ(val.get<double>("iou"), 0.7);
  EXPECT_EQ(val.get<int>("max-det"), 300);
  EXPECT_EQ(val.get<std::string>("split"), "val");
  EXPECT_FALSE(val.get<bool>("rect"));
  auto const predict = parse("predict", {"--weights", "w", "--source", "s", "--out", "o"}, {});
  EXPECT_EQ(predict.get<double>("conf"), 0.25);
}

TEST(Options, CommandLineBeatsVariableBeatsFileBeatsDefault) {
  Environment const environment = {{"YOLOHPC_EPOCHS", "20"}, {"YOLOHPC_LR0", "0.2"}};
  std::string const config = "epochs = 30\nlr0 = 0.3\nseed = 3\n";
  auto const options = train({"--epochs", "10"}, environment, config);
  EXPECT_EQ(options.get<int>("epochs"), 10);
  EXPECT_EQ(options.source("epochs"), Source::command_line);
  EXPECT_EQ(options.get<double>("lr0"), 0.2);
  EXPECT_EQ(options.source("lr0"), Source::environment);
  EXPECT_EQ(options.get<int>("seed"), 3);
  EXPECT_EQ(options.source("seed"), Source::config_file);
  EXPECT_EQ(options.get<int>("keep"), 2);
  EXPECT_EQ(options.source("keep"), Source::default_value);
  EXPECT_TRUE(options.was_set("seed"));
  EXPECT_FALSE(options.was_set("keep"));
}

// --optimizer auto must know that someone typed the rate, even when the value is the default.
TEST(Options, AValueThatEqualsTheDefaultCountsAsSet) {
  EXPECT_TRUE(train({"--lr0", "0.01"}).was_set("lr0"));
  EXPECT_FALSE(train({}).was_set("lr0"));
}

TEST(Options, TakeValuesBehindABlankOrAnEqualsSign) {
  auto const options = train({"--lr0=.5", "--shear", "-7.5", "--cos-lr", "off", "--exist-ok",
                              "--tf32=off", "--close_mosaic", "4", "--weights="});
  EXPECT_EQ(options.get<double>("lr0"), 0.5);
  EXPECT_EQ(options.get<double>("shear"), -7.5);
  EXPECT_FALSE(options.get<bool>("cos-lr"));
  EXPECT_TRUE(options.get<bool>("exist-ok"));
  EXPECT_FALSE(options.get<bool>("tf32"));
  EXPECT_EQ(options.get<int>("close-mosaic"), 4);
  EXPECT_FALSE(options.has("weights"));
}

TEST(Options, KnowManySpellingsOfOnAndOff) {
  for (auto const* word : {"on", "true", "True", "1", "yes", "ON"}) {
    EXPECT_TRUE(train({"--cos-lr", word}).get<bool>("cos-lr")) << word;
  }
  for (auto const* word : {"off", "false", "False", "0", "no"}) {
    EXPECT_FALSE(train({"--cos-lr", word}).get<bool>("cos-lr")) << word;
  }
  EXPECT_TRUE(train({"--exist-ok", "--seed", "1"}).get<bool>("exist-ok"));
  expect_parts(train_error({"--cos-lr=maybe"}), {"--cos-lr", "'maybe'", "on or off"});
}

TEST(Options, NameTheNearestForAnUnknownOne) {
  expect_parts(train_error({"--epoch", "3"}), {"--epoch ", "--epochs"});
  expect_parts(train_error({"--batch-size", "3"}), {"--batch-size", "--batch."});
  expect_parts(train_error({"--lr", "3"}), {"--lr ", "--lr0"});
  expect_parts(train_error({"--wieght-decay=1"}), {"--weight-decay"});
  expect_parts(train_error({"-epochs", "3"}), {"--epochs"});
  expect_parts(train_error({}, {}, "epoch = 3\n"), {"some.cfg, line 1", "--epochs"});
  expect_parts(train_error({}, {{"YOLOHPC_EPOCH", "3"}}), {"YOLOHPC_EPOCH", "YOLOHPC_EPOCHS"});
}

// A beginning of a name is not the name: with a later option it would change its meaning.
TEST(Options, AreNotGuessedFromTheirBeginnings) {
  expect_parts(train_error({"--epo", "3"}), {"--epo ", "--epochs"});
}

TEST(Options, SayWhichCommandAnOptionBelongsTo) {
  expect_parts(train_error({"--conf", "0.5"}), {"--conf", "belongs to val, predict, bench"});
}

TEST(Options, RefuseWrongKindsAndRangesWithValueAndWhatIsAllowed) {
  expect_parts(train_error({"--epochs", "ten"}),
               {"--epochs", "'ten'", "command line", "at least 1"});
  expect_parts(train_error({"--epochs", "0"}), {"--epochs", "'0'", "too small"});
  expect_parts(train_error({"--epochs", "1.5"}), {"'1.5'", "whole number"});
  expect_parts(train_error({"--epochs", "99999999999999999999"}), {"too large"});
  expect_parts(train_error({"--batch", ""}), {"--batch", "''"});
  expect_parts(train_error({"--version=3"}), {"--version", "'3'", "no value"});
  expect_parts(train_error({"--lr0", "-0.1"}), {"--lr0", "'-0.1'", "above 0"});
  expect_parts(train_error({"--lr0", "0"}), {"--lr0", "'0'", "above 0"});
  expect_parts(train_error({"--lr0", "nan"}), {"'nan'"});
  expect_parts(train_error({"--lr0", "1e999"}), {"'1e999'"});
  expect_parts(train_error({"--lr0", "0.1x"}), {"'0.1x'"});
  expect_parts(train_error({"--momentum", "1.5"}), {"'1.5'", "0 to 1"});
  expect_parts(train_error({"--imgsz", "650"}), {"'650'", "multiple of 32"});
  expect_parts(train_error({"--optimizer", "adam"}), {"'adam'", "auto, sgd, adamw or musgd"});
  expect_parts(train_error({"--workers", "many"}), {"'many'", "auto"});
  expect_parts(train_error({}, {{"YOLOHPC_MIXUP", "2"}}), {"YOLOHPC_MIXUP", "'2'", "0 to 1"});
  expect_parts(train_error({}, {}, "\n\nmixup = two\n"), {"some.cfg, line 3", "'two'"});
}

TEST(Options, RefuseMissingAndDoubleValues) {
  expect_parts(train_error({"--epochs"}), {"--epochs", "nothing follows"});
  expect_parts(train_error({"--epochs", "--seed", "1"}), {"--epochs", "'--seed'"});
  expect_parts(train_error({"--epochs", "1", "--epochs=2"}), {"--epochs", "twice", "'2'"});
  expect_parts(train_error({"packed"}), {"'packed'", "--name value"});
  expect_parts(train_error({}, {}, "seed = 1\nseed = 2\n"), {"'seed'", "line 1", "line 2"});
  expect_parts(usage_error([] { parse("train", {}, {}); }), {"train", "--data", "packed folder"});
  expect_parts(usage_error([] { parse("bench", {}, {}); }),
               {"step, loader, comm, eval, checkpoint"});
  expect_parts(usage_error([] { parse("bench", {"stop"}, {}); }), {"'stop'", "nearest is 'step'"});
  EXPECT_EQ(parse("bench", {"step", "--steps", "4"}, {}).positionals(), Words{"step"});
  EXPECT_EQ(parse("checkpoint", {"ls", "runs/x"}, {}).positionals(), (Words{"ls", "runs/x"}));
}

TEST(Options, ReadWordsBesidesNumbers) {
  auto const options = train({"--workers", "3"});
  EXPECT_EQ(options.optional_integer("workers"), 3);
  EXPECT_EQ(options.optional_integer("threads"), std::nullopt);
  auto const bench = parse("bench", {"comm"}, {});
  EXPECT_EQ(bench.optional_number("size-mib"), std::nullopt);
  EXPECT_EQ(bench.optional_number("bucket-mib"), 25);
  EXPECT_EQ(options.optional_size_range("multi-scale"), std::nullopt);
  EXPECT_EQ(train({"--optimizer", "SGD"}).get<std::string>("optimizer"), "sgd");
}

// A small table of the forms that yolohpc's own may not have open at the time.
TEST(Options, ReadSizeRangesAndSayWhatIsNotAvailable) {
  Table const table{.program = "toy",
                    .commands = {{.name = ""}},
                    .options = {{.name = "sizes",
                                 .kind = Kind::size_range,
                                 .default_text = "off",
                                 .words = {"off"},
                                 .minimum = 32,
                                 .multiple_of = 32},
                                {.name = "later", .default_text = "no", .is_implemented = false},
                                {.name = "help", .kind = Kind::action},
                                {.name = "config"},
                                {.name = "version", .kind = Kind::action}}};
  auto const read = [&](Words const& words) { return parse(table, "", words, {}); };
  EXPECT_EQ(read({"--sizes", "608:704:32"}).optional_size_range("sizes"),
            (SizeRange{608, 704, 32}));
  EXPECT_EQ(read({"--sizes", "off"}).optional_size_range("sizes"), std::nullopt);
  for (auto const* wrong : {"608", "608:704", "704:608:32", "608:704:0", "600:704:32", "a:b:c"}) {
    expect_parts(usage_error([&] { read({"--sizes", wrong}); }), {"--sizes", wrong, "LO:HI:STEP"});
  }
  EXPECT_EQ(read({"--later", "no"}).get<std::string>("later"), "no");
  expect_parts(usage_error([&] {
                 read({"--later", "yes"});
               }),
               {"--later", "'yes'", "not available"});
}

TEST(Options, LeaveVariablesAndKeysOfOtherCommandsAlone) {
  Environment const environment = {{"YOLOHPC_CONF", "0.5"},
                                   {"YOLOHPC_GOLDEN_DIR", "/g"},
                                   {"YOLOHPC_CHECKPOINT", "x"},
                                   {"YOLOHPC_TORCH_DIR", "/t"}};
  EXPECT_NO_THROW(train({}, environment));
  auto const options = train({}, {}, "conf = 0.5\nseed = 1\n");
  EXPECT_EQ(options.get<int>("seed"), 1);
  ASSERT_EQ(options.warnings().size(), 1);
  expect_parts(options.warnings()[0], {"some.cfg", "conf"});
}

TEST(Options, ReadConfigurationFilesWithCommentsAndQuotes) {
  auto const options = train({}, {},
                             "# heading\n  epochs=7   # why seven\n\nout = \"a # b\"\r\n"
                             "model = x#y.yaml\ncos_lr = True\nweights =\n");
  EXPECT_EQ(options.get<int>("epochs"), 7);
  EXPECT_EQ(options.get<std::string>("out"), "a # b");
  EXPECT_EQ(options.get<std::string>("model"), "x#y.yaml");
  EXPECT_TRUE(options.get<bool>("cos-lr"));
  EXPECT_FALSE(options.has("weights"));
  expect_parts(train_error({}, {}, "epochs 7\n"), {"line 1", "'epochs 7'", "key = value"});
  expect_parts(train_error({}, {}, "out = \"a\n"), {"line 1", "quote"});
  expect_parts(train_error({}, {}, "config = b.cfg\n"), {"'config'", "single call"});
  expect_parts(usage_error([] {
                 parse("train", {"--config", "/nowhere/x.cfg"}, {});
               }),
               {"--config", "/nowhere/x.cfg", "No such file"});
}

TEST(Options, WrittenConfigurationReadsBackTheSame) {
  auto options =
      train({"--out", " a \"b\" # c\\d\n", "--shear", "-3", "--lr0", "0.1e-2", "--exist-ok",
             "--seed", "12345678901234", "--model", "m#1.yaml", "--train-split", ""});
  options.resolve("optimizer", "adamw");
  auto const text = options.to_config_text();
  auto const again = parse(yolohpc_table(), "train", {"--config", "c"}, {},
                           [&](std::string const&) { return text; });
  for (auto const* option : yolohpc_table().options_of("train")) {
    if (option->is_one_shot) continue;
    EXPECT_EQ(again.get<std::string>(option->name), options.get<std::string>(option->name));
  }
  EXPECT_EQ(again.to_config_text(), text);
  EXPECT_EQ(again.get<std::string>("optimizer"), "adamw");
  EXPECT_FALSE(options.was_set("optimizer"));
  EXPECT_TRUE(again.warnings().empty());
}

TEST(Options, BecomeJsonWithTypes) {
  auto const json = nlohmann::json::parse(train({"--epochs", "5", "--cos-lr"}).to_json());
  EXPECT_EQ(json.at("epochs"), 5);
  EXPECT_EQ(json.at("cos-lr"), true);
  EXPECT_EQ(json.at("lr0"), 0.01);
  EXPECT_EQ(json.at("workers"), "auto");
  EXPECT_FALSE(json.contains("help"));
}

TEST(Options, HelpForgivesTheRest) {
  EXPECT_TRUE(parse("train", {"--help"}, {}).wants_help());
  EXPECT_TRUE(parse("train", {"--nonsense", "-h"}, {{"YOLOHPC_NONSENSE", "1"}}).wants_help());
  auto const version = parse("val", {"--version", "--json", "-"}, {});
  EXPECT_TRUE(version.wants_version());
  EXPECT_EQ(version.get<std::string>("json"), "-");
}

// Every option of every command stands in the help text with its default and its unit.
TEST(Help, ShowsEveryOptionWithUnitAndDefault) {
  auto const flat = [](std::string const& text) {
    std::string result;
    for (char const letter : text) {
      bool const is_blank = letter == ' ' || letter == '\n';
      if (!is_blank) result += letter;
    }
    return result;
  };
  for (auto const& command : yolohpc_table().commands) {
    auto const text = flat(command_help(yolohpc_table(), std::string(command.name)));
    for (auto const* option : yolohpc_table().options_of(command.name)) {
      expect_parts(text, {base::join("--", option->name)});
      if (!option->default_text.empty()) {
        expect_parts(text, {base::join("(=", option->default_text, ")")});
      }
      if (!option->unit.empty()) expect_parts(text, {flat(base::join("[", option->unit))});
    }
  }
}

TEST(Help, LinesFitATerminal) {
  for (auto const& command : yolohpc_table().commands) {
    std::istringstream text(command_help(yolohpc_table(), std::string(command.name)));
    std::string line;
    while (std::getline(text, line)) EXPECT_LE(line.size(), 112) << line;
  }
}

// A table with an error in itself would only be noticed by the user who meets the row.
TEST(OptionTable, DefaultsAreAllowedAndNamesAreUnique) {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (auto const& command : yolohpc_table().commands) {
    for (auto const* option : yolohpc_table().options_of(command.name)) {
      EXPECT_TRUE(seen.emplace(command.name, option->name).second) << option->name;
      EXPECT_FALSE(option->help.empty()) << option->name;
      EXPECT_FALSE(option->group.empty()) << option->name;
      ParsedOptions options(yolohpc_table(), std::string(command.name));
      if (option->default_text.empty()) continue;
      EXPECT_NO_THROW(options.resolve(option->name, std::string(option->default_text)));
    }
    for (auto const& name : command.required) {
      EXPECT_NE(yolohpc_table().find_option(command.name, name), nullptr) << name;
    }
  }
}

TEST(Invocation, FindsTheCommand) {
  auto const read = [](Words const& words) { return read_invocation(yolohpc_table(), words); };
  EXPECT_EQ(read({"train", "--data", "x"}).command, "train");
  EXPECT_EQ(read({"train", "--data", "x"}).arguments, (Words{"--data", "x"}));
  EXPECT_TRUE(read({"--help"}).wants_help);
  EXPECT_TRUE(read({"help", "train"}).wants_help);
  EXPECT_EQ(read({"help", "train"}).command, "train");
  auto const version = read({"--version", "--json", "-"});
  EXPECT_TRUE(version.wants_version);
  EXPECT_EQ(version.json, "-");
  expect_parts(usage_error([&] { read({}); }), {"needs a command", "train"});
  expect_parts(usage_error([&] { read({"trian"}); }), {"'trian'", "nearest is 'train'"});
  expect_parts(usage_error([&] { read({"--data", "x"}); }), {"--data", "COMMAND"});
}

TEST(Nearest, CountsSwapsAndBeginnings) {
  EXPECT_EQ(nearest("ab", {"xy", "ba", "abcdefgh"}), "ba");
  EXPECT_EQ(nearest("batch-size", {"box", "cache-size", "batch"}), "batch");
  EXPECT_EQ(nearest("WARMUP_EPOCHS", {"epochs", "warmup-epochs"}), "warmup-epochs");
  EXPECT_EQ(nearest("x", {}), "");
}

}  // namespace
}  // namespace yolohpc::cli
