// Sees what quipu-atlas of this project's own model sees.
#include QUIPU_ENGINE_MODELS_HEADER

static_assert(quipu::model_name<own::narrow>() == "narrow");
