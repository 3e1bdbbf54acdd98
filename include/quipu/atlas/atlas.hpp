// The atlas: cards of every component and named tensor, as values, text, markdown, JSON and pages.
#pragma once

#include "quipu/atlas/card_json.hpp"
#include "quipu/atlas/card_text.hpp"
#include "quipu/atlas/catalogue.hpp"
#include "quipu/atlas/count.hpp"
#include "quipu/atlas/find.hpp"
#include "quipu/atlas/layer_statistics.hpp"

#include "quipu/atlas/page.hpp"
#include "quipu/atlas/profile.hpp"
#include "quipu/atlas/verify.hpp"
